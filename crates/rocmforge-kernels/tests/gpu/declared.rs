//! Every declared kernel: results at all its dimensions, in place where it may be, at any address, and refused where its declaration is not kept.

use crate::support::device;
use rocmforge_kernels::declared::{Ask, Buffers, Declared, Elements, Expected, Values, all};
use rocmforge_kernels::{KernelError, KernelResult, Kernels, Launched, Observed, Parameter, Tuning, reference};
use rocmforge_runtime::{HipBuffer, HipStream};
use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Bytes before and behind every operand.
const GUARD: usize = 64;
/// What they hold.
const GUARD_BYTE: u8 = 0xC3;

/// What stands in the place of the operands that a call asks for.
#[derive(Clone, Copy)]
enum Mode {
    /// Each as it is asked for, so many elements behind an aligned address; of bytes, which may be of any type, so many times 16.
    Own(usize),
    /// The first is the second.
    Same(&'static str, &'static str),
    /// The second begins within the last 16 bytes of the first, which is asked for earlier; bytes of the second.
    Overlap(&'static str, &'static str, usize),
    /// One element less.
    Short(&'static str),
}

/// An operand: the whole allocation, and which of its bytes the operand has.
struct Made {
    whole: HipBuffer<u8>,
    at: usize,
    bytes: Vec<u8>,
    written: bool,
    elements: Elements,
}

impl Made {
    /// Whether a launch accesses a part of it, or all of it, as it is declared.
    fn has(&self, accessed: &Observed) -> bool {
        let begin = self.whole.as_device_ptr().addr() + self.at;
        let inside = accessed.address >= begin && accessed.address + accessed.bytes <= begin + self.bytes.len();
        inside && (self.written || !accessed.written)
    }
}

struct Operands {
    mode: Mode,
    made: BTreeMap<&'static str, Made>,
}

impl Operands {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            made: BTreeMap::new(),
        }
    }

    /// Bytes of an operand now.
    fn get(&self, stream: &HipStream, name: &str) -> Vec<u8> {
        let made = &self.made[name];
        made.whole.to_vec(stream).expect("download")[made.at..][..made.bytes.len()].to_vec()
    }

    /// What was not to be written is as before.
    fn untouched(&self, stream: &HipStream, what: &str) {
        for (name, made) in &self.made {
            let now = made.whole.to_vec(stream).expect("download");
            let end = made.at + made.bytes.len();
            assert!(
                now[..made.at].iter().chain(&now[end..]).all(|&byte| byte == GUARD_BYTE),
                "{what}: bytes beside {name} were written"
            );
            if !made.written {
                assert_eq!(now[made.at..end], made.bytes, "{what}: the input {name} was written");
            }
        }
    }
}

impl Buffers for Operands {
    fn buffer(&mut self, stream: &HipStream, ask: &Ask<'_>) -> KernelResult<Box<dyn Any>> {
        let (name, written) = (ask.name, ask.written);
        let values = (ask.make)();
        let (bytes, element) = match &values {
            Values::F32(values) => (bytemuck::cast_slice(values).to_vec(), 4),
            Values::U32(values) => (bytemuck::cast_slice(values).to_vec(), 4),
            Values::U8(values) => (values.clone(), 1),
            Values::U64(values) => (bytemuck::cast_slice(values).to_vec(), 8),
        };
        let mut at = GUARD;
        let mut length = bytes.len();
        let mut whole = None;
        let mut room = 0;
        match self.mode {
            // A byte operand is of some type with an alignment of up to 16.
            Mode::Own(offset) => at += offset * if element == 1 { 16 } else { element },
            Mode::Same(one, other) if name == one => whole = Some(self.made[other].whole.clone()),
            Mode::Overlap(first, _, more) if name == first => room = more,
            Mode::Overlap(first, second, _) if name == second => {
                let first = &self.made[first];
                at = first.at + (first.bytes.len() - 1) / 16 * 16;
                whole = Some(first.whole.clone());
            }
            Mode::Short(short) if name == short => length -= element,
            _ => {}
        }
        let whole = match whole {
            Some(whole) => whole,
            None => {
                let mut all = vec![GUARD_BYTE; at];
                all.extend(&bytes);
                all.extend(vec![GUARD_BYTE; room + GUARD]);
                HipBuffer::from_slice(stream, &all, name)?
            }
        };
        let part = whole.view(at..at + length)?;
        let made = Made {
            whole,
            at,
            bytes,
            written,
            elements: ask.elements,
        };
        self.made.insert(name, made);
        Ok(match values {
            Values::F32(_) => Box::new(part.cast::<f32>()?),
            Values::U32(_) => Box::new(part.cast::<u32>()?),
            Values::U8(_) => Box::new(part),
            Values::U64(_) => Box::new(part.cast::<u64>()?),
        })
    }
}

/// One call, with what it must give and the launches that it made.
struct Ran {
    operands: Operands,
    expected: Vec<Expected>,
    /// Without the launches that prepare operands.
    launched: Vec<Launched>,
}

fn run(kernels: &Kernels, stream: &HipStream, kernel: &Declared, dims: &[usize], mode: Mode) -> KernelResult<Ran> {
    call(kernels, stream, kernel, dims, mode, false)
}

/// The same; where it says so, also what the definition gives, which takes longer than most kernels.
fn call(
    kernels: &Kernels,
    stream: &HipStream,
    kernel: &Declared,
    dims: &[usize],
    mode: Mode,
    definition: bool,
) -> KernelResult<Ran> {
    let mut operands = Operands::new(mode);
    let ran = kernel.run(kernels, stream, &mut operands, dims, definition)?;
    Ok(Ran {
        operands,
        expected: ran.expected,
        launched: ran.launched.into_iter().filter(|launch| !launch.prepares).collect(),
    })
}

impl Ran {
    /// Compares what a call gave with the definition.
    fn compare(&self, stream: &HipStream, definition: &[Expected], what: &str) {
        assert!(!definition.is_empty(), "{what} compares nothing");
        for expected in definition {
            let bytes = self.operands.get(stream, expected.name);
            let found: Vec<f64> = match self.operands.made[expected.name].elements {
                Elements::U32(_) => bytemuck::pod_collect_to_vec::<u8, u32>(&bytes)
                    .into_iter()
                    .map(f64::from)
                    .collect(),
                _ => match expected.ty {
                    Some(ty) => reference::kv_values(ty, &bytes),
                    None => bytes.iter().copied().map(f64::from).collect(),
                },
            };
            assert_eq!(found.len(), expected.values.len(), "{what}: {}", expected.name);
            for (at, (found, wanted)) in found.iter().zip(&expected.values).enumerate() {
                let same = found == wanted || (found.is_nan() && wanted.is_nan());
                assert!(
                    same || (found - wanted).abs() <= expected.within,
                    "{what}: {}[{at}] is {found:e} and must be {wanted:e} within {:e}",
                    expected.name,
                    expected.within
                );
            }
        }
    }
}

/// Names of launchers with a space between them, which are tested alone: `cargo xtask kernels test NAME`.
const VARIABLE: &str = "ROCMFORGE_DECLARED";

/// The kernels that are tested, and whether they are all.
fn chosen() -> (Vec<&'static Declared>, bool) {
    let Ok(names) = std::env::var(VARIABLE) else {
        return (all().collect(), true);
    };
    let names: Vec<&str> = names.split_whitespace().collect();
    assert!(!names.is_empty(), "{VARIABLE} names no launcher");
    for name in &names {
        assert!(
            all().any(|kernel| kernel.name == *name),
            "no launcher {name} is declared"
        );
    }
    (all().filter(|kernel| names.contains(&kernel.name)).collect(), false)
}

/// Each kernel at each of its tested dimensions, after a call with operands of its own.
#[allow(clippy::print_stdout)] // what a card lacks is not tested there: the output says so
fn each(definition: bool, check: impl Fn(&Kernels, &HipStream, &Declared, &'static [usize], &Ran, &str)) {
    let d = device();
    let mut seen = 0;
    let (kernels, are_all) = chosen();
    for kernel in kernels {
        assert!(!kernel.tested.is_empty(), "{} is not tested", kernel.name);
        for dims in kernel.tested {
            let what = format!("{} {dims:?}", kernel.name);
            match call(&d.kernels, d.stream(), kernel, dims, Mode::Own(0), definition) {
                Ok(ran) => check(&d.kernels, d.stream(), kernel, dims, &ran, &what),
                Err(error @ KernelError::NotForDevice { .. }) => println!("{what}: {error}"),
                Err(error) => panic!("{what}: {error}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 100 || !are_all, "{seen} calls");
}

#[test]
fn results_are_those_of_the_definition_at_any_address() {
    each(true, |k, s, kernel, dims, aligned, what| {
        let moved = run(k, s, kernel, dims, Mode::Own(1)).unwrap_or_else(|error| panic!("{what}: {error}"));
        for ran in [aligned, &moved] {
            ran.compare(s, &aligned.expected, what);
            ran.operands.untouched(s, what);
            for operand in ran.launched.iter().flat_map(|launch| &launch.operands) {
                let known = ran.operands.made.values().any(|made| made.has(operand));
                assert!(known, "{what} does not declare the operand {:?}", operand.name);
            }
        }
    });
}

/// Launchers whose grid depends on a parameter, with dimensions where it does on cards of 40 to 140 multiprocessors.
const TUNED: [(Parameter, &str, &[usize]); 3] = [
    (Parameter::ProductThreads, "matvec_q8", &[3, 2500, 256]),
    (Parameter::ProductThreads, "matvec_q8_row", &[2500, 256]),
    (Parameter::TileBlocks, "packed16", &[9, 9000, 256]),
];

#[test]
#[allow(clippy::print_stdout)] // as above
fn results_are_those_of_the_definition_however_the_card_is_tuned() {
    let d = device();
    for (parameter, name, dims) in TUNED {
        // Some of the types of weights.
        for kernel in all().filter(|kernel| kernel.name == name).step_by(5) {
            let mut grids = Vec::new();
            for &value in parameter.variants() {
                let mut tuning = Tuning::RULES;
                tuning.set(parameter, value, [1.0; 2]).expect("a variant");
                let what = format!("{name} {dims:?} with {parameter:?} = {value}");
                match call(&d.kernels.tuned(tuning), d.stream(), kernel, dims, Mode::Own(0), true) {
                    Ok(ran) => {
                        ran.compare(d.stream(), &ran.expected, &what);
                        grids.push(ran.launched[0].grid);
                    }
                    Err(error @ KernelError::NotForDevice { .. }) => println!("{what}: {error}"),
                    Err(error) => panic!("{what}: {error}"),
                }
            }
            grids.dedup();
            assert_ne!(grids.len(), 1, "{name} {dims:?}: one grid for all variants");
        }
    }
}

#[test]
fn an_output_may_be_the_operands_that_it_names() {
    let pairs = Cell::new(0);
    each(false, |k, s, kernel, dims, own, what| {
        for output in own.launched.iter().flat_map(|launch| &launch.operands) {
            for &other in output.may_be {
                if own.operands.made.get(other).is_some_and(|made| !made.written) {
                    let same = run(k, s, kernel, dims, Mode::Same(output.name, other));
                    let same = same.unwrap_or_else(|error| panic!("{what}, {} is {other}: {error}", output.name));
                    let (apart, together) = (own.operands.get(s, output.name), same.operands.get(s, output.name));
                    assert_eq!(
                        apart, together,
                        "{what}: another result where {} is {other}",
                        output.name
                    );
                    pairs.set(pairs.get() + 1);
                }
            }
        }
    });
    assert!(pairs.get() > 100 || !chosen().1, "{} pairs", pairs.get());
}

#[test]
fn lengths_overlap_and_dimensions_of_zero_are_refused() {
    each(false, |k, s, kernel, dims, own, what| {
        if kernel.tested.last() != Some(&dims) {
            return;
        }
        // A launcher that goes through others may have a launch of its own among theirs.
        let launches = &own.launched;
        let first = launches.iter().find(|launch| launch.op == kernel.name);
        let operands = &first.unwrap_or(&launches[0]).operands;
        for (at, later) in operands.iter().enumerate() {
            let short = run(k, s, kernel, dims, Mode::Short(later.name)).err();
            assert!(
                short.is_some() || !later.sized,
                "{what}: {} may be one element short",
                later.name
            );
            let apart = |earlier: &&Observed| earlier.name != later.name && (later.written || earlier.written);
            for earlier in operands[..at].iter().filter(apart) {
                if earlier.bytes <= 16 && earlier.bytes == later.bytes {
                    continue; // they would be one
                }
                let mode = Mode::Overlap(earlier.name, later.name, later.bytes);
                let error = run(k, s, kernel, dims, mode).err();
                let pair = [later.name, earlier.name];
                assert!(
                    matches!(&error, Some(KernelError::Overlap { first, second, .. }) if pair.contains(first) && pair.contains(second)),
                    "{what}: {pair:?} overlap: {error:?}"
                );
            }
        }
        for at in 0..dims.len() {
            let mut none = dims.to_vec();
            none[at] = 0;
            let error = run(k, s, kernel, &none, Mode::Own(0)).err();
            assert!(error.is_some(), "{what}: {none:?} is not refused");
        }
    });
}
