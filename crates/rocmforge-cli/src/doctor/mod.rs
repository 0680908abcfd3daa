//! Doctor: what keeps each AMD card of this machine from being used, with the next command to type.
//!
//! It looks at files first. HIP is asked last, in a process of its own: a library that crashes or hangs must not take the doctor with it.

mod self_test;

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::Args as Arguments;
use rocmforge::backend::{Availability, HipBackend};
use rocmforge::machine::limited::{Ended, run_limited};
use rocmforge::machine::sysfs::{Access, Machine, Sysfs};
use rocmforge_hip_sys::LoadOptions;
use serde_json::json;

use crate::cards;
use crate::failure::Failure;
use crate::options::MachineOptions;

/// Says what keeps a card from being used, and what to type next; with --self-test computes on the card and compares.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// Looks at a copy of sys, proc, dev, etc, lib, usr and opt in this folder in place of the machine; HIP is not asked.
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
    /// Computes a tiny model with every family of kernels, and compares with stored logits.
    #[arg(long)]
    self_test: bool,
    /// Prints one JSON object, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
    /// Asks HIP in this process, and prints what it says.
    #[arg(long, hide = true)]
    ask_hip: bool,
    #[command(flatten)]
    machine: MachineOptions,
}

/// What a card is, and what keeps it from being used, the first thing to do first.
struct Card {
    name: String,
    /// The driver's name for it, `card0`, where it has a driver.
    node: Option<String>,
    troubles: Vec<Trouble>,
}

/// One cause, and what to do about it.
struct Trouble {
    what: String,
    next: String,
}

fn trouble(what: impl Into<String>, next: impl Into<String>) -> Trouble {
    Trouble {
        what: what.into(),
        next: next.into(),
    }
}

/// A distribution, for names of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Distribution {
    Debian,
    Ubuntu,
    Fedora,
    Arch,
    Other,
}

impl Distribution {
    fn of(root: &Path) -> Self {
        let text = std::fs::read_to_string(root.join("etc/os-release")).unwrap_or_default();
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let ids = [value("ID="), value("ID_LIKE=")]
            .map(Option::unwrap_or_default)
            .join(" ")
            .replace('"', "");
        let known = |id: &str| match id {
            "debian" => Some(Self::Debian),
            "ubuntu" => Some(Self::Ubuntu),
            "fedora" => Some(Self::Fedora),
            "arch" => Some(Self::Arch),
            _ => None,
        };
        ids.split_whitespace().find_map(known).unwrap_or(Self::Other)
    }

    /// The command that installs the card's firmware.
    fn firmware(self) -> &'static str {
        match self {
            Self::Debian => "sudo apt install firmware-amd-graphics (component non-free-firmware), then restart",
            Self::Ubuntu => "sudo apt install linux-firmware, then restart",
            Self::Fedora => "sudo dnf install amd-gpu-firmware, then restart",
            Self::Arch => "sudo pacman -S linux-firmware, then restart",
            Self::Other => "install the package of linux-firmware with the folder amdgpu, then restart",
        }
    }

    /// The command that installs HIP's runtime.
    fn hip(self) -> &'static str {
        match self {
            Self::Debian | Self::Ubuntu => {
                "sudo apt install hip-runtime-amd, after AMD's repository was added (https://rocm.docs.amd.com/projects/install-on-linux)"
            }
            Self::Fedora => "sudo dnf install rocm-hip",
            Self::Arch => "sudo pacman -S hip-runtime-amd",
            Self::Other => {
                "install ROCm's package hip-runtime-amd (https://rocm.docs.amd.com/projects/install-on-linux)"
            }
        }
    }
}

/// The first kernel and the first HIP that know a generation of cards, by the device number on the PCI bus and the processor.
struct Generation {
    name: &'static str,
    /// Numbers on the PCI bus; of the graphics in processors, those of libdrm's `amdgpu.ids`.
    devices: &'static [std::ops::RangeInclusive<u32>],
    target: &'static str,
    kernel: [u32; 2],
    hip: [u32; 2],
}

const GENERATIONS: [Generation; 4] = [
    Generation {
        name: "RDNA 4 (RX 9000)",
        devices: &[0x7550..=0x759f],
        target: "gfx120",
        kernel: [6, 12],
        hip: [6, 3],
    },
    Generation {
        name: "RDNA 3.5 (Radeon 8060S, 890M)",
        // Strix Point, Strix Halo, Krackan Point.
        devices: &[0x150e..=0x150e, 0x1586..=0x1586, 0x1114..=0x1114],
        target: "gfx115",
        // From here on the driver takes what programs ask for from the machine's memory, not from the small carve-out alone (docs/memory.md).
        kernel: [6, 10],
        // The first whose sources name gfx1150 and gfx1151.
        hip: [6, 0],
    },
    Generation {
        name: "RDNA 3 (RX 7000, Radeon 780M)",
        // The cards; Phoenix and Hawk Point, which are gfx1103.
        devices: &[0x7440..=0x749f, 0x15bf..=0x15bf, 0x15c8..=0x15c8, 0x1900..=0x1901],
        target: "gfx110",
        kernel: [6, 1],
        hip: [5, 7],
    },
    Generation {
        name: "RDNA 2 (RX 6000)",
        devices: &[0x73a0..=0x73ff],
        target: "gfx103",
        kernel: [5, 11],
        hip: [5, 2],
    },
];

/// The first two numbers of a version.
fn version(text: &str) -> Option<[u32; 2]> {
    let mut numbers = text.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some([numbers.next()?.ok()?, numbers.next()?.ok()?])
}

/// A HIP library that is installed.
struct Library {
    path: String,
    /// Where its file's name has one.
    version: Option<[u32; 2]>,
    /// The variable of the environment that names it.
    variable: Option<&'static str>,
}

/// HIP libraries that are installed where the runtime looks for them: what the environment names is first, and of that only the first is used.
struct Libraries {
    found: Vec<Library>,
    /// The file that `ROCMFORGE_HIP_LIBRARY` names: no other is used, there or not.
    exact: Option<PathBuf>,
}

/// The variable that names one library and no other.
const EXACT: &str = "ROCMFORGE_HIP_LIBRARY";

impl Libraries {
    /// Looks in `root`; `options` are the runtime's own.
    fn look(root: &Path, options: LoadOptions) -> Self {
        let names = |folder: &Path| -> Vec<String> {
            let entries = std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
            let mut names: Vec<String> = entries
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect();
            names.sort();
            names
        };
        let linker = ["usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib"].map(PathBuf::from);
        let inside = |path: &Path| path.strip_prefix("/").unwrap_or(path).to_owned();
        let library = |folder: &Path, name: &str, variable| Library {
            path: Path::new("/").join(folder).join(name).display().to_string(),
            version: name.strip_prefix("libamdhip64.so.").and_then(version),
            variable,
        };
        if let Some(exact) = options.exact {
            let name = exact.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A name without a folder is looked for by the dynamic linker.
            let folders = match exact.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) => vec![inside(folder)],
                None => linker.into(),
            };
            let there = folders.iter().find(|folder| root.join(folder).join(name).is_file());
            // A link has the name of the file that it leads to.
            let found = there.map(|folder| {
                let target = root.join(folder).join(name).canonicalize().ok();
                let target = target.as_ref().and_then(|target| target.file_name()?.to_str());
                Library {
                    version: target.and_then(|name| version(name.strip_prefix("libamdhip64.so.")?)),
                    ..library(folder, name, Some(EXACT))
                }
            });
            return Self {
                found: found.into_iter().collect(),
                exact: Some(exact),
            };
        }
        let named = options
            .roots
            .iter()
            .map(|(variable, root)| (inside(&root.join("lib")), Some(*variable)));
        let rocm = names(Path::new("opt"))
            .into_iter()
            .filter(|name| name.starts_with("rocm"))
            .map(|name| Path::new("opt").join(name).join("lib"));
        let others = linker.into_iter().chain(rocm).map(|folder| (folder, None));
        let mut found: Vec<Library> = Vec::new();
        for (folder, variable) in named.chain(others) {
            // The longest name has the whole version: libamdhip64.so.6.3.60301.
            let is_library = |name: &String| name.starts_with("libamdhip64.so");
            if let Some(name) = names(&folder).into_iter().filter(is_library).max_by_key(String::len) {
                let library = library(&folder, &name, variable);
                if found.iter().all(|other| other.path != library.path) {
                    found.push(library);
                }
            }
        }
        Self { found, exact: None }
    }

    /// The library that counts: the first that the environment names, else the newest.
    fn used(&self) -> Option<&Library> {
        let named = self.found.iter().find(|library| library.variable.is_some());
        named.or_else(|| self.found.iter().max_by_key(|library| library.version))
    }
}

/// What was found.
struct Report {
    kernel: String,
    groups: Vec<String>,
    libraries: Libraries,
    cards: Vec<Card>,
    /// What HIP says, where it was asked.
    hip: Option<Result<String, String>>,
}

fn look(root: &Path) -> Report {
    let sysfs = Sysfs::at(root);
    let machine = sysfs.machine();
    let distribution = Distribution::of(root);
    let kernel = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
    let kernel = kernel.trim().to_owned();
    let libraries = Libraries::look(root, LoadOptions::from_env());
    let mut cards: Vec<Card> = Vec::new();
    for card in sysfs.bare_amd_cards() {
        let generation = GENERATIONS.iter().find(|of| {
            of.devices
                .iter()
                .any(|range| card.device.is_some_and(|device| range.contains(&device)))
        });
        let what = generation.map_or("AMD card", |of| of.name);
        cards.push(Card {
            name: format!("{}, {what}", card.pci),
            node: None,
            troubles: vec![no_driver(root, &machine, distribution, generation, &kernel)],
        });
    }
    for card in machine.amd_cards() {
        let node = machine.node_of(card);
        let target = node.and_then(|node| node.target.as_deref());
        let mut troubles = Vec::new();
        if machine.kfd.is_none() {
            troubles.push(trouble(
                "/dev/kfd is missing: the driver has no compute support, or a container was started without it",
                "sudo modprobe amdgpu; in a container, start it with --device /dev/kfd --device /dev/dri",
            ));
        } else if node.is_none() {
            troubles.push(trouble(
                "the driver does not offer it for compute",
                "sudo dmesg | grep -i -e amdgpu -e kfd says why; a newer kernel may know the card",
            ));
        }
        let ours = |name: &Path| card.render_node.as_deref().is_none_or(|node| name.ends_with(node));
        let files = machine
            .kfd
            .iter()
            .chain(machine.render_nodes.iter().filter(|file| ours(&file.path)));
        for file in files.filter(|file| file.access == Access::Denied) {
            let group = file.group.name.clone().unwrap_or_else(|| file.group.id.to_string());
            troubles.push(trouble(
                format!(
                    "this user may not use {}, which belongs to the group {group}",
                    file.path.display()
                ),
                format!("sudo usermod -aG {group} $USER, then log out and in again"),
            ));
        }
        troubles.extend(target.filter(|target| !cards::has_kernels(target)).map(|target| {
            trouble(
                format!(
                    "this program has no kernels for {target}; it has them for {}",
                    cards::with_kernels()
                ),
                "rocmforge run --device cpu",
            )
        }));
        troubles.extend(library_trouble(&libraries, target, distribution));
        let product = card.product.as_deref().unwrap_or("AMD card");
        let pci = card.pci.as_deref().unwrap_or(&card.name);
        cards.push(Card {
            name: format!("{pci}, {product}, {}", target.unwrap_or("no compute")),
            node: Some(card.name.clone()),
            troubles,
        });
    }
    let groups = machine.user.groups.iter();
    Report {
        kernel,
        groups: groups
            .map(|group| group.name.clone().unwrap_or_else(|| group.id.to_string()))
            .collect(),
        libraries,
        cards,
        hip: None,
    }
}

/// The driver's names for this machine's cards that nothing keeps from being used, as far as files say: HIP is not asked.
pub(crate) fn ready_cards() -> Vec<String> {
    let ready = look(Path::new("/")).cards.into_iter();
    ready
        .filter(|card| card.troubles.is_empty())
        .filter_map(|card| card.node)
        .collect()
}

/// Why no driver has taken a card.
fn no_driver(
    root: &Path,
    machine: &Machine,
    distribution: Distribution,
    generation: Option<&Generation>,
    kernel: &str,
) -> Trouble {
    if let (Some(of), Some(found)) = (generation, version(kernel))
        && found < of.kernel
    {
        let [major, minor] = of.kernel;
        return trouble(
            format!(
                "it has no driver: the kernel is {kernel}, and {} needs {major}.{minor} or newer",
                of.name
            ),
            format!("install a kernel of at least {major}.{minor}, then restart"),
        );
    }
    if !machine.amdgpu_loaded {
        return trouble("it has no driver: amdgpu is not loaded", "sudo modprobe amdgpu");
    }
    let has_firmware = ["lib/firmware/amdgpu", "usr/lib/firmware/amdgpu"]
        .iter()
        .any(|folder| root.join(folder).is_dir());
    if !has_firmware {
        return trouble(
            "amdgpu is loaded and has no firmware: there is no folder /lib/firmware/amdgpu",
            distribution.firmware(),
        );
    }
    trouble(
        "amdgpu is loaded and did not take it",
        "sudo dmesg | grep -i amdgpu says why: firmware of this card that is missing, or a kernel that does not know it",
    )
}

/// Why no installed HIP can use a card.
fn library_trouble(libraries: &Libraries, target: Option<&str>, distribution: Distribution) -> Option<Trouble> {
    let next = distribution.hip();
    let Some(used) = libraries.used() else {
        return Some(match &libraries.exact {
            Some(exact) => trouble(
                format!(
                    "{EXACT} names {}, and no such file is there: no other library is used",
                    exact.display()
                ),
                format!("unset {EXACT}, or set it to the path of a libamdhip64.so"),
            ),
            None => trouble("there is no HIP library (libamdhip64.so)", next),
        });
    };
    let target = target?;
    let of = GENERATIONS.iter().find(|of| target.starts_with(of.target))?;
    let [major, minor] = used.version?;
    let [least, of_least] = of.hip;
    ([major, minor] < of.hip).then(|| {
        trouble(
            format!(
                "HIP {major}.{minor} ({}) does not know {target}: {} needs {least}.{of_least} or newer",
                used.path, of.name
            ),
            match used.variable {
                Some(variable) => format!("let {variable} name a newer one, or unset it"),
                None => next.to_owned(),
            },
        )
    })
}

/// How long HIP may take to answer. After a reset of the card a driver may never answer.
const HIP_ANSWERS: Duration = Duration::from_secs(30);

/// What HIP says, asked in a process of its own.
fn ask_hip() -> Result<String, String> {
    let program = std::env::current_exe().map_err(|error| format!("it could not be asked: {error}"))?;
    ask_by(Command::new(program).args(["doctor", "--ask-hip"]))
}

/// What a program says of HIP.
fn ask_by(program: &mut Command) -> Result<String, String> {
    let (ended, said) = run_limited(program, HIP_ANSWERS).map_err(|error| format!("it could not be asked: {error}"))?;
    let said = said.trim().to_owned();
    let Ended::With(status) = ended else {
        return Err(format!("the library did not answer within {} s", HIP_ANSWERS.as_secs()));
    };
    match (status.success(), status.signal()) {
        (true, _) => Ok(said),
        (false, Some(signal)) => Err(format!(
            "the library ended its process by signal {signal}: install ROCm anew"
        )),
        (false, None) => Err(said),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    if args.ask_hip {
        let answer = HipBackend::availability();
        writeln!(out, "{answer}")?;
        return match answer {
            Availability::Available { .. } => Ok(()),
            Availability::Unavailable(why) => Err(why.to_string().into()),
        };
    }
    if args.self_test {
        return self_test::run(&args.machine, args.json);
    }
    if !args.root.is_dir() {
        return Err(format!("{} is no folder to look at", args.root.display()).into());
    }
    let mut report = look(&args.root);
    // A library is asked where it could answer.
    let is_ready = |card: &Card| card.troubles.is_empty();
    if args.root == Path::new("/") && report.cards.iter().any(is_ready) {
        let answer = ask_hip();
        if let Err(why) = &answer {
            // The library has refused every card that looked well.
            for card in report.cards.iter_mut().filter(|card| is_ready(card)) {
                card.troubles.push(trouble(
                    format!("HIP: {why}"),
                    "`rocmforge run` says the same; docs/on-a-radeon.md has versions that work",
                ));
            }
        }
        report.hip = Some(answer);
    }
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string(&report.json())?)?,
        false => report.print(&mut out)?,
    }
    Ok(())
}

impl Report {
    fn json(&self) -> serde_json::Value {
        let cards = self.cards.iter().map(|card| {
            let troubles = card
                .troubles
                .iter()
                .map(|of| json!({ "what": of.what, "next": of.next }));
            json!({ "name": card.name, "usable": card.troubles.is_empty(), "troubles": troubles.collect::<Vec<_>>() })
        });
        let libraries = self
            .libraries
            .found
            .iter()
            .map(|of| json!({ "path": of.path, "version": of.version, "variable": of.variable }));
        json!({
            "kernel": self.kernel,
            "groups": self.groups,
            "hip_libraries": libraries.collect::<Vec<_>>(),
            "cards": cards.collect::<Vec<_>>(),
            "hip": self.hip.as_ref().map(|said| said.clone().unwrap_or_else(|error| error)),
        })
    }

    fn print(&self, out: &mut impl Write) -> std::io::Result<()> {
        let mut row = |name: &str, value: &str| writeln!(out, "{name:<8} {value}");
        row("kernel", &self.kernel)?;
        row("groups", &self.groups.join(", "))?;
        for Library { path, variable, .. } in &self.libraries.found {
            match variable {
                Some(variable) => row("HIP", &format!("{path} ({variable})"))?,
                None => row("HIP", path)?,
            }
        }
        if let Some(Ok(said) | Err(said)) = &self.hip {
            row("HIP", said)?;
        }
        if self.cards.is_empty() {
            row(
                "card",
                "no AMD card is on the PCI bus: `--device cpu` and `--device sim` need none",
            )?;
        }
        for card in &self.cards {
            row("card", &card.name)?;
            for trouble in &card.troubles {
                row("", &trouble.what)?;
                row("  next", &trouble.next)?;
            }
            if card.troubles.is_empty() {
                row("", "no problem was found")?;
                row("  next", "rocmforge doctor --self-test")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_says_more_than_a_pipe_holds_is_heard() {
        let mut program = Command::new("sh");
        program.args(["-c", "head -c 300000 /dev/zero | tr '\\0' x"]);
        assert_eq!(ask_by(&mut program).map(|said| said.len()), Ok(300_000));
        let mut program = Command::new("sh");
        assert_eq!(
            ask_by(program.args(["-c", "echo no card; exit 1"])),
            Err("no card".to_owned())
        );
        let mut program = Command::new("sh");
        let crashed = ask_by(program.args(["-c", "kill -SEGV $$"])).expect_err("it crashed");
        assert!(crashed.contains("signal 11"), "{crashed}");
    }
}
