//! Steps: launches, and the copies, states, frees and waits between them.

use super::argument::{Scope, argument};
use super::reference::named_buffer;
use super::{Argument, Buffer, LaunchFile};
use crate::error::{Error, Place};
use crate::toml_reader::{Table, Value, nearest};
use std::path::Path;

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Where it stands.
    pub place: Place,
    /// What it is.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Allocates a buffer, which is not there before, and fills it.
    Alloc {
        /// Index into [`LaunchFile::buffers`].
        buffer: usize,
    },
    /// Copies from one buffer to another, in a stream.
    Copy(Copy),
    /// Queues a launch: an index into [`LaunchFile::launches`].
    Launch(usize),
    /// Frees a buffer.
    Free {
        /// Index into [`LaunchFile::buffers`].
        buffer: usize,
    },
    /// Waits for a stream; none: for all of them.
    Wait(Option<String>),
}

/// A copy from one buffer to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// What later steps call it in `after`.
    pub name: String,
    /// Buffer and bytes from its start.
    pub from: (usize, u64),
    /// The same of the destination.
    pub to: (usize, u64),
    /// How many.
    pub bytes: u64,
    /// The stream.
    pub stream: String,
    /// Steps of other streams that must have ended: indices into [`LaunchFile::steps`].
    pub after: Vec<usize>,
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Where it stands.
    pub place: Place,
    /// What later steps call it in `after`.
    pub name: String,
    /// The kernel.
    pub kernel: String,
    /// The object it is in: an index into [`LaunchFile::objects`]; none: the one that has it.
    pub object: Option<usize>,
    /// Groups.
    pub grid: [u32; 3],
    /// Work-items of a group.
    pub block: [u32; 3],
    /// Bytes of dynamic LDS.
    pub lds: u32,
    /// The stream; launches in one stream run one after another.
    pub stream: String,
    /// Steps of other streams that must have ended: indices into [`LaunchFile::steps`].
    pub after: Vec<usize>,
    /// The arguments.
    pub args: Vec<Argument>,
}

impl LaunchFile {
    /// The stream of a step that works in one, and the steps it waits for.
    pub(crate) fn queued(&self, step: usize) -> Option<(&str, &[usize])> {
        match &self.steps.get(step)?.action {
            Action::Launch(index) => self.launches.get(*index).map(|l| (l.stream.as_str(), &l.after[..])),
            Action::Copy(copy) => Some((&copy.stream, &copy.after)),
            Action::Alloc { .. } | Action::Free { .. } | Action::Wait(_) => None,
        }
    }

    fn name_of<'s>(&'s self, step: &'s Step) -> Option<&'s str> {
        match &step.action {
            Action::Launch(index) => self.launches.get(*index).map(|launch| launch.name.as_str()),
            Action::Copy(copy) => Some(&copy.name),
            Action::Alloc { .. } | Action::Free { .. } | Action::Wait(_) => None,
        }
    }
}

/// Whether each named buffer is there, as the steps go on.
#[derive(Clone, PartialEq, Eq)]
enum BufferState {
    /// It will be allocated.
    Unallocated,
    Allocated,
    Freed,
}

/// Reads `[[launch]]`.
pub(super) fn launches(list: &Value<'_>, directory: &Path, file: &mut LaunchFile) -> Result<(), Error> {
    let named = file.buffers.len();
    for value in list.array()? {
        let table = value.table("a launch")?;
        let kernel = table.need("kernel")?.str()?.to_owned();
        push_launch(table, kernel, directory, named, file)?;
    }
    Ok(())
}

/// Reads `[[step]]`.
pub(super) fn steps(list: &Value<'_>, directory: &Path, file: &mut LaunchFile) -> Result<(), Error> {
    let named = file.buffers.len();
    let mut states = vec![BufferState::Allocated; named];
    for value in list.array()? {
        let Some(table) = value.as_table("a step") else {
            continue;
        };
        let alloc = table.get("alloc").and_then(|name| name.as_str());
        let found = alloc.and_then(|name| file.buffers.iter().position(|buffer| buffer.label == name));
        if let Some(buffer) = found {
            states[buffer] = BufferState::Unallocated;
        }
    }
    let all = file.buffers.iter().zip(&states);
    for (buffer, _) in all.filter(|(_, state)| **state == BufferState::Allocated) {
        if buffer.fill.pointers().any(|to| states[to] == BufferState::Unallocated) {
            let problem =
                "holds the address of a buffer that a step allocates later: allocate it in a step too, after that";
            return Err(Error::value(buffer.place.clone(), &buffer.label, problem));
        }
    }
    for value in list.array()? {
        step(&value, directory, named, &mut states, file)?;
    }
    Ok(())
}

fn step(
    value: &Value<'_>,
    directory: &Path,
    named: usize,
    states: &mut [BufferState],
    file: &mut LaunchFile,
) -> Result<(), Error> {
    let table = value.table("a step")?;
    let actions = [
        table.get("launch"),
        table.get("copy"),
        table.get("alloc"),
        table.get("free"),
        table.get("wait"),
    ];
    let given: Vec<&str> = actions.iter().flatten().map(|action| action.key()).collect();
    if given.len() > 1 {
        return Err(value.wrong(format!("has `{}`; a step does one thing", given.join("` and `"))));
    }
    let place = table.place();
    match actions {
        [Some(kernel), ..] => {
            let kernel = kernel.str()?.to_owned();
            let first = push_launch(table, kernel, directory, named, file)?;
            for argument in &file.launches[first].args {
                if let Argument::Buffer { index, .. } = argument {
                    let never = states.get(*index) == Some(&BufferState::Unallocated);
                    refuse_unallocated(never, &file.buffers[*index], &place)?;
                }
            }
            Ok(())
        }
        [_, Some(from), ..] => {
            let copy = copy(&table, &from, named, file)?;
            for (index, _) in [copy.from, copy.to] {
                refuse_unallocated(states[index] == BufferState::Unallocated, &file.buffers[index], &place)?;
            }
            push(table, Action::Copy(copy), file)
        }
        [.., Some(name), None, None] => {
            let buffer = named_buffer(name.place(), name.str()?, &file.buffers[..named])?;
            if states[buffer] == BufferState::Allocated {
                return Err(name.wrong(format!(
                    "is \"{}\", which is allocated already: free it first",
                    file.buffers[buffer].label
                )));
            }
            states[buffer] = BufferState::Allocated;
            for pointer in file.buffers[buffer].fill.pointers() {
                let never = states[pointer] == BufferState::Unallocated;
                refuse_unallocated(never, &file.buffers[pointer], &place)?;
            }
            push(table, Action::Alloc { buffer }, file)
        }
        [.., Some(name), None] => {
            let buffer = named_buffer(name.place(), name.str()?, &file.buffers[..named])?;
            refuse_unallocated(
                states[buffer] == BufferState::Unallocated,
                &file.buffers[buffer],
                &place,
            )?;
            // One that is freed already may be freed again: that is a fault to be found.
            states[buffer] = BufferState::Freed;
            push(table, Action::Free { buffer }, file)
        }
        [.., Some(stream)] => {
            let stream = stream.str()?;
            push(table, Action::Wait((stream != "all").then(|| stream.to_owned())), file)
        }
        _ => {
            table.finish()?;
            Err(value.wrong("needs one of `launch`, `copy`, `alloc`, `free` and `wait`"))
        }
    }
}

/// Refuses a buffer that no step has allocated yet.
fn refuse_unallocated(unallocated: bool, buffer: &Buffer, at: &Place) -> Result<(), Error> {
    if unallocated {
        let problem = "is used before the step that allocates it";
        return Err(Error::value(at.clone(), &buffer.label, problem));
    }
    Ok(())
}

fn push(table: Table<'_>, action: Action, file: &mut LaunchFile) -> Result<(), Error> {
    let place = table.place();
    table.finish()?;
    file.steps.push(Step { place, action });
    Ok(())
}

/// Adds a launch and its step, and gives the launch's index.
fn push_launch(
    table: Table<'_>,
    kernel: String,
    directory: &Path,
    named: usize,
    file: &mut LaunchFile,
) -> Result<usize, Error> {
    let index = file.launches.len();
    let launch = launch(&table, kernel, directory, named, file)?;
    file.launches.push(launch);
    push(table, Action::Launch(index), file)?;
    Ok(index)
}

fn launch(
    table: &Table<'_>,
    kernel: String,
    directory: &Path,
    named: usize,
    file: &mut LaunchFile,
) -> Result<Launch, Error> {
    let name = match table.get("name") {
        Some(name) => name.str()?.to_owned(),
        None => kernel.clone(),
    };
    let object = table.get("object").map(|name| object(&name, file)).transpose()?;
    let after = after(table, file)?;
    let mut args = Vec::new();
    if let Some(list) = table.get("args") {
        for (position, value) in list.array()?.enumerate() {
            let scope = Scope {
                directory,
                named,
                label: format!("launch {}, argument {position}", file.launches.len()),
            };
            args.push(argument(&value, &scope, &mut file.buffers)?);
        }
    }
    Ok(Launch {
        place: table.place(),
        name,
        kernel,
        object,
        grid: table.get("grid").map_or(Ok([1; 3]), |value| dimensions(&value))?,
        block: dimensions(&table.need("block")?)?,
        lds: table
            .get("lds")
            .map_or(Ok(0), |value| value.integer(0, u64::from(u32::MAX)))? as u32,
        stream: stream(table)?,
        after,
        args,
    })
}

/// The object of a name.
fn object(name: &Value<'_>, file: &LaunchFile) -> Result<usize, Error> {
    let wanted = name.str()?;
    let names = || file.objects.iter().filter_map(|object| object.name.as_deref());
    names().position(|known| known == wanted).ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        name.wrong(match (nearest(wanted, names()), known.is_empty()) {
            (Some(near), _) => format!("names \"{wanted}\": did you mean \"{near}\"?"),
            (None, false) => format!("names \"{wanted}\"; there are: {}", known.join(", ")),
            (None, true) => "names an object; several are named in a table `[objects]`".to_owned(),
        })
    })
}

fn stream(table: &Table<'_>) -> Result<String, Error> {
    let stream = table.get("stream").map_or(Ok("main"), |value| value.str())?;
    Ok(stream.to_owned())
}

fn after(table: &Table<'_>, file: &LaunchFile) -> Result<Vec<usize>, Error> {
    let mut after = Vec::new();
    let Some(names) = table.get("after") else {
        return Ok(after);
    };
    for name in names.array()? {
        let wanted = name.str()?;
        let found = file.steps.iter().rposition(|step| file.name_of(step) == Some(wanted));
        after.push(found.ok_or_else(|| {
            name.wrong(format!(
                "names \"{wanted}\", which is no launch or copy before this one"
            ))
        })?);
    }
    Ok(after)
}

/// `copy = "x"`, `to = "y"`
fn copy(table: &Table<'_>, from: &Value<'_>, named: usize, file: &LaunchFile) -> Result<Copy, Error> {
    let buffers = &file.buffers[..named];
    let to = table.need("to")?;
    let from_index = named_buffer(from.place(), from.str()?, buffers)?;
    let to_index = named_buffer(to.place(), to.str()?, buffers)?;
    let offset = |key| table.get(key).map_or(Ok(0), |value| value.integer(0, u64::MAX));
    let (from_offset, to_offset) = (offset("from_offset")?, offset("to_offset")?);
    let size = |index: usize| buffers[index].bytes() as u64;
    let rest = size(from_index).saturating_sub(from_offset);
    let bytes = table
        .get("bytes")
        .map_or(Ok(rest), |value| value.integer(1, u64::MAX))?;
    for (what, index, offset) in [("from", from_index, from_offset), ("to", to_index, to_offset)] {
        if offset.checked_add(bytes).is_none_or(|end| end > size(index)) || bytes == 0 {
            return Err(from.wrong(format!(
                "copies {bytes} B {what} byte {offset} of \"{}\", which has {} B",
                buffers[index].label,
                size(index)
            )));
        }
    }
    Ok(Copy {
        name: table.get("name").map_or(Ok("copy"), |name| name.str())?.to_owned(),
        from: (from_index, from_offset),
        to: (to_index, to_offset),
        bytes,
        stream: stream(table)?,
        after: after(table, file)?,
    })
}

/// One to three sizes.
fn dimensions(value: &Value<'_>) -> Result<[u32; 3], Error> {
    let one = |value: &Value<'_>| value.integer(1, u64::from(u32::MAX)).map(|n| n as u32);
    if !value.is_array() {
        return Ok([one(value)?, 1, 1]);
    }
    let mut sizes = [1; 3];
    let mut count = 0;
    for (index, size) in value.array()?.enumerate() {
        *sizes
            .get_mut(index)
            .ok_or_else(|| value.wrong("has more than three sizes"))? = one(&size)?;
        count += 1;
    }
    if count == 0 {
        return Err(value.wrong("is empty"));
    }
    Ok(sizes)
}
