//! Tune: measures on a card what the kernels' rules can only guess, and keeps it for this card, driver and build.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args as Arguments;
use rocmforge::backend::Provider;
use rocmforge::device::DeviceName;
use rocmforge::kernels::{Kernels, Measured, Parameter, Timed, Tuning};
use rocmforge::tuning::{self, Subject};
use serde_json::json;

use crate::failure::Failure;
use crate::folders;
use crate::machine::{self, Opened};
use crate::options::MachineOptions;
use crate::progress::Progress;

/// Measures which variants of the kernels are fastest on a card, and keeps that for this card, driver and build: less than a minute.
///
/// Every command uses what was kept; without it built-in rules hold. Only the rounding of results may change.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    machine: MachineOptions,
    /// Measures nothing: shows what holds now, by which rule or measurement.
    #[arg(long, conflicts_with = "reset")]
    show: bool,
    /// Measures nothing: forgets what was kept, so that the built-in rules hold.
    #[arg(long)]
    reset: bool,
    /// Time of all measurements in seconds, 1 to 3600; each variant is timed at least once.
    #[arg(long, default_value_t = 45, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Prints the result as JSON.
    #[arg(long)]
    json: bool,
}

/// The folder of what was kept, of all cards.
pub(crate) fn folder() -> Option<PathBuf> {
    Some(folders::state()?.join("tuning"))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let Opened::Cards(cards) = machine::open(&args.machine)? else {
        return Err("tune measures a card, and this is the CPU: --device names a card, such as hip:0".into());
    };
    if cards.backends().count() > 1 {
        return Err("tune measures one card at a time: --device names several".into());
    }
    let folder = folder().ok_or("neither XDG_STATE_HOME nor HOME says where the result should lie")?;
    let kernels = Kernels::load(cards.first())?;
    if args.reset {
        let text = match tuning::forget(&folder, &kernels)? {
            Some(path) => format!("removed {}: the built-in rules hold", path.display()),
            None => "nothing was kept for this card: the built-in rules hold".to_owned(),
        };
        return Ok(writeln!(std::io::stdout(), "{text}")?);
    }
    if args.show {
        let kept = tuning::load(&folder, &kernels)?;
        return print(args, &kernels, &folder, kept.unwrap_or_default(), &[]);
    }
    let is_simulated = matches!(args.machine.device.parse(), Ok(DeviceName::Sim(_))) || Provider::amd_is_simulated();
    let measured = measure(&kernels, is_simulated, Duration::from_secs(args.seconds))?;
    let mut tuning = Tuning::RULES;
    for one in &measured {
        one.apply(&mut tuning)?;
    }
    // What was measured is kept, whoever reads the table.
    match is_simulated {
        true => eprintln!("not kept: the times of a simulated card mean nothing"),
        false => {
            let path = tuning::keep(&folder, &kernels, &measured)?;
            eprintln!("kept in {}; `rocmforge tune --reset` forgets it", path.display());
        }
    }
    print(args, &kernels, &folder, tuning, &measured)
}

/// Measures all parameters, each with those before it as they were chosen.
fn measure(kernels: &Kernels, is_simulated: bool, within: Duration) -> Result<Vec<Measured>, Failure> {
    let timed = if is_simulated { Timed::Small } else { Timed::Whole };
    let progress = Progress::new("measuring");
    let begin = Instant::now();
    let (mut measured, mut tuning) = (Vec::new(), Tuning::RULES);
    for (at, parameter) in Parameter::ALL.into_iter().enumerate() {
        let left = Parameter::ALL.len() - at;
        let share = within.saturating_sub(begin.elapsed()) / u32::try_from(left).unwrap_or(1);
        let mut done = |share: f64| {
            let whole = Parameter::ALL.len() as f64;
            progress.set(((at as f64 + share) / whole * 1000.0) as usize, 1000);
        };
        let stream = kernels.backend().stream();
        if let Some(one) = (kernels.tuned(tuning)).measure(stream, parameter, timed, share, &mut done)? {
            one.apply(&mut tuning)?;
            measured.push(one);
        }
    }
    Ok(measured)
}

fn print(args: &Args, kernels: &Kernels, folder: &Path, tuning: Tuning, measured: &[Measured]) -> Result<(), Failure> {
    let subject = Subject::of(kernels);
    let mut out = std::io::stdout().lock();
    if args.json {
        let parameters = Parameter::ALL.map(|parameter| {
            let micros = tuning.micros(parameter);
            let times = measured
                .iter()
                .find(|one| one.parameter == parameter)
                .map(|one| &one.times);
            json!({
                "parameter": parameter.name(),
                "value": tuning.value(parameter),
                "rule": parameter.rule(),
                "by": if micros.is_some() { "measurement" } else { "rule" },
                "micros": micros.map(|[own, _]| own),
                "rule_micros": micros.map(|[_, rule]| rule),
                "variants": parameter.variants(),
                "times": times,
            })
        });
        let file = tuning::file(folder, kernels);
        let text = json!({ "subject": subject, "file": file, "parameters": parameters });
        return Ok(writeln!(out, "{text}")?);
    }
    writeln!(out, "{} ({})", subject.card, subject.processor)?;
    for parameter in Parameter::ALL {
        writeln!(out, "  {}", tuning.explain(parameter))?;
        if let Some(one) = measured.iter().find(|one| one.parameter == parameter) {
            let times: Vec<String> = one
                .times
                .iter()
                .map(|(value, time)| format!("{value}: {time:.1} us"))
                .collect();
            writeln!(out, "    {}", times.join(", "))?;
        }
    }
    Ok(())
}
