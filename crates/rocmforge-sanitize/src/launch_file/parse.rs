//! From TOML to a [`LaunchFile`].

use super::toml_reader::{Source, Table, Value};
use super::{Argument, Buffer, Launch, LaunchFile, MAX_BYTES, MAX_SEEDS, ScheduleKind, buffer};
use crate::dtype::DType;
use crate::error::{Error, Place};
use crate::object_file::ARCHS;
use rocmforge_amdgcn::Tools;
use std::path::Path;

/// Seeds when the file names none.
const DEFAULT_SEEDS: u64 = 16;
/// Instructions of a launch when the file names no budget: a few seconds.
const DEFAULT_BUDGET: u64 = 100_000_000;

pub(super) fn launch_file(path: &Path, text: &str) -> Result<LaunchFile, Error> {
    let source = Source::new(path, text);
    let document = source.parse(text)?;
    let root = Table::new(&source, "a launch file", document.get_ref(), source.place(0));
    let directory = path.parent().unwrap_or(Path::new(""));
    let object = root.need("object")?;
    let mut file = LaunchFile {
        place: source.place(0),
        allow_outside: false,
        object: directory.join(object.str()?),
        object_place: object.place(),
        arch: root.get("arch").map(|value| arch(&value)).transpose()?,
        seeds: root
            .get("seeds")
            .map_or(Ok((0..DEFAULT_SEEDS).collect()), |value| seeds(&value))?,
        tools: root.get("tools").map_or(Ok(Tools::all()), |value| tools(&value))?,
        schedule: root
            .get("schedule")
            .map_or(Ok(ScheduleKind::default()), |value| value.one_of(SCHEDULES))?,
        strict: root.get("strict").map_or(Ok(false), |value| value.bool())?,
        budget: root
            .get("budget")
            .map_or(Ok(DEFAULT_BUDGET), |value| value.integer(1, u64::MAX >> 1))?,
        buffers: Vec::new(),
        launches: Vec::new(),
    };
    if let Some(buffers) = root.get("buffers") {
        for value in buffers.table("buffers")?.entries() {
            let found = buffer::buffer(&value, value.key().to_owned(), directory)?;
            file.buffers.push(found);
        }
    }
    let named = file.buffers.len();
    for (index, value) in root.need("launch")?.array()?.enumerate() {
        let launch = launch(&value, index, directory, named, &mut file)?;
        file.launches.push(launch);
    }
    if file.launches.is_empty() {
        return Err(Error::MissingKey {
            at: file.place,
            key: "launch",
            table: "a launch file",
        });
    }
    root.finish()?;
    saved_once(&file)?;
    let bytes: u64 = file.buffers.iter().map(|buffer| buffer.bytes() as u64).sum();
    if bytes > MAX_BYTES {
        let problem = format!("take {bytes} B together; {MAX_BYTES} B are the most");
        return Err(Error::value(file.place, "buffers", problem));
    }
    Ok(file)
}

/// One of the simulated processors.
fn arch(value: &Value<'_>) -> Result<&'static str, Error> {
    let known: Vec<_> = ARCHS.iter().map(|arch| (*arch, *arch)).collect();
    value.one_of(&known)
}

/// Refuses outputs that would be written over each other or over what they came from.
fn saved_once(file: &LaunchFile) -> Result<(), Error> {
    let mut taken = vec![file.object.as_path(), &*file.place.file];
    for buffer in &file.buffers {
        let Some(path) = buffer.save.as_deref() else { continue };
        if taken.contains(&path) {
            let problem = format!(
                "is written to {}, which is the launch file, the object or another buffer's",
                path.display()
            );
            return Err(Error::value(buffer.place.clone(), &buffer.label, problem));
        }
        taken.push(path);
    }
    Ok(())
}

const SCHEDULES: &[(&str, ScheduleKind)] = &[
    ("lazy", ScheduleKind::Lazy),
    ("eager", ScheduleKind::Eager),
    ("reverse", ScheduleKind::Reverse),
    ("random", ScheduleKind::Random),
    ("pct", ScheduleKind::Pct),
];

/// Seeds from a text: a count `16`, or a range `8..24`.
pub(crate) fn seed_range(text: &str) -> Result<Vec<u64>, String> {
    let number = |text: &str| {
        text.trim()
            .parse::<u64>()
            .map_err(|_| format!("is \"{text}\", not a number"))
    };
    let range = match text.split_once("..") {
        Some((from, to)) => number(from)?..number(to)?,
        None => 0..number(text)?,
    };
    match range.end.saturating_sub(range.start) {
        0 => Err(format!("is \"{text}\", which is no seed at all")),
        n if n > MAX_SEEDS as u64 => Err(format!("names {n} seeds; {MAX_SEEDS} are the most")),
        _ => Ok(range.collect()),
    }
}

/// A count, a range `"8..24"`, or a list.
fn seeds(value: &Value<'_>) -> Result<Vec<u64>, Error> {
    if let Some(text) = value.as_str() {
        return seed_range(text).map_err(|problem| value.wrong(problem));
    }
    if value.is_array() {
        let seeds = value
            .array()?
            .map(|seed| seed.integer(0, u64::MAX))
            .collect::<Result<Vec<_>, _>>()?;
        if seeds.is_empty() {
            return Err(value.wrong("is empty"));
        }
        return Ok(seeds);
    }
    let count = value.integer(1, MAX_SEEDS as u64)?;
    Ok((0..count).collect())
}

/// The tools by name.
pub(crate) fn tool_set<'a>(names: impl Iterator<Item = &'a str>) -> Result<Tools, String> {
    let mut tools = Tools::none();
    let mut names = names.peekable();
    if names.peek().is_none() {
        return Err("is empty: nothing would be checked".to_owned());
    }
    for name in names {
        match name {
            "memcheck" => tools.memcheck = true,
            "initcheck" => tools.initcheck = true,
            "init_registers" => tools.init_registers = true,
            "racecheck" => tools.racecheck = true,
            "synccheck" => tools.synccheck = true,
            other => {
                let known = "memcheck, initcheck, racecheck, synccheck, init_registers";
                return Err(format!("has \"{other}\"; there are: {known}"));
            }
        }
    }
    Ok(tools)
}

fn tools(value: &Value<'_>) -> Result<Tools, Error> {
    let names = value.array()?.map(|name| name.str()).collect::<Result<Vec<_>, _>>()?;
    tool_set(names.into_iter()).map_err(|problem| value.wrong(problem))
}

fn launch(
    value: &Value<'_>,
    index: usize,
    directory: &Path,
    named: usize,
    file: &mut LaunchFile,
) -> Result<Launch, Error> {
    let table = value.table("a launch")?;
    let kernel = table.need("kernel")?.str()?.to_owned();
    let name = match table.get("name") {
        Some(name) => name.str()?.to_owned(),
        None => kernel.clone(),
    };
    let mut after = Vec::new();
    if let Some(names) = table.get("after") {
        for name in names.array()? {
            let wanted = name.str()?;
            let found = file.launches.iter().rposition(|launch| launch.name == wanted);
            after.push(
                found.ok_or_else(|| name.wrong(format!("names \"{wanted}\", which is no launch before this one")))?,
            );
        }
    }
    let mut args = Vec::new();
    if let Some(list) = table.get("args") {
        for (position, value) in list.array()?.enumerate() {
            args.push(argument(
                &value,
                (index, position),
                directory,
                named,
                &mut file.buffers,
            )?);
        }
    }
    let launch = Launch {
        place: table.place(),
        name,
        kernel,
        grid: table.get("grid").map_or(Ok([1; 3]), |value| dimensions(&value))?,
        block: dimensions(&table.need("block")?)?,
        lds: table
            .get("lds")
            .map_or(Ok(0), |value| value.integer(0, u64::from(u32::MAX)))? as u32,
        stream: table.get("stream").map_or(Ok("main"), |value| value.str())?.to_owned(),
        after,
        args,
    };
    table.finish()?;
    Ok(launch)
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

fn argument(
    value: &Value<'_>,
    (launch, position): (usize, usize),
    directory: &Path,
    named: usize,
    buffers: &mut Vec<Buffer>,
) -> Result<Argument, Error> {
    if let Some(number) = value.as_number() {
        return Ok(Argument::Number(number));
    }
    if value.is_array() {
        let mut bytes = Vec::new();
        for part in value.array()? {
            bytes.extend(typed(&part)?);
        }
        return Ok(Argument::Bytes(bytes));
    }
    if let Some(text) = value.as_str() {
        if !buffer::is_short(text) {
            return address(value.place(), text, 0, &buffers[..named]);
        }
        let label = format!("launch {launch}, argument {position}");
        buffers.push(buffer::buffer(value, label, directory)?);
        return Ok(Argument::Buffer {
            index: buffers.len() - 1,
            offset: 0,
        });
    }
    let table = value.table("an argument")?;
    match table.get("buffer") {
        Some(name) => {
            let offset = table
                .get("offset")
                .map_or(Ok(0), |offset| offset.integer(0, u64::MAX))?;
            let found = address(name.place(), name.str()?, offset, &buffers[..named])?;
            table.finish()?;
            Ok(found)
        }
        None => typed(value).map(Argument::Bytes),
    }
}

fn address(at: Place, name: &str, offset: u64, buffers: &[Buffer]) -> Result<Argument, Error> {
    let found = buffers.iter().position(|buffer| buffer.label == name);
    match found {
        Some(index) => Ok(Argument::Buffer { index, offset }),
        None => {
            let known: Vec<&str> = buffers.iter().map(|buffer| buffer.label.as_str()).collect();
            let known = if known.is_empty() {
                "none".to_owned()
            } else {
                known.join(", ")
            };
            Err(Error::NoSuchBuffer {
                at,
                name: name.to_owned(),
                known,
            })
        }
    }
}

/// `{ f32 = 1.5 }`
fn typed(value: &Value<'_>) -> Result<Vec<u8>, Error> {
    let table = value.table("an argument")?;
    let mut entries = table.entries();
    let form = || {
        let all: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        value.wrong(format!(
            "takes a number, a buffer, or one number with its type as {{ f32 = 1.5 }}; types are: {}",
            all.join(", ")
        ))
    };
    let (Some(entry), None) = (entries.next(), entries.next()) else {
        return Err(form());
    };
    let dtype = DType::named(entry.key()).ok_or_else(form)?;
    let number = entry.number()?;
    dtype
        .encode(number)
        .ok_or_else(|| entry.wrong(format!("is {number}, which is no {dtype}")))
}
