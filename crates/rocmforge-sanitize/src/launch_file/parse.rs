//! Parser of launch files: reads TOML into a [`LaunchFile`].

use super::{LaunchFile, MAX_BYTES, MAX_SEEDS, ObjectRef, ScheduleKind, buffer, steps};
use crate::error::Error;
use crate::object_error::ARCHS;
use crate::toml_reader::{Source, Table, Value};
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
    let mut file = LaunchFile {
        place: source.place(0),
        allow_outside: false,
        objects: objects(&root, directory)?,
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
        steps: Vec::new(),
    };
    if let Some(buffers) = root.get("buffers") {
        let buffers = buffers.table("buffers")?;
        for value in buffers.entries() {
            let found = buffer::buffer(&value, value.key().to_owned(), directory)?;
            file.buffers.push(found);
        }
        // They may name buffers that are declared after them.
        for (index, value) in buffers.entries().enumerate() {
            buffer::point(&value, index, &mut file.buffers)?;
        }
    }
    match (root.get("launch"), root.get("step")) {
        (Some(launches), None) => steps::launches(&launches, directory, &mut file)?,
        (None, Some(list)) => steps::steps(&list, directory, &mut file)?,
        (Some(_), Some(list)) => {
            return Err(list.wrong("stands beside `launch`; write launches as steps too, or only launches"));
        }
        (None, None) => return Err(root.missing("launch")),
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

/// `object = "a.co"`, or a table of several.
fn objects(root: &Table<'_>, directory: &Path) -> Result<Vec<ObjectRef>, Error> {
    let reference = |value: &Value<'_>, name: Option<String>| {
        Ok::<_, Error>(ObjectRef {
            name,
            path: directory.join(value.str()?),
            place: value.place(),
        })
    };
    match (root.get("object"), root.get("objects")) {
        (Some(object), None) => Ok(vec![reference(&object, None)?]),
        (None, Some(several)) => {
            let table = several.table("objects")?;
            let found = table
                .entries()
                .map(|value| reference(&value, Some(value.key().to_owned())));
            let found = found.collect::<Result<Vec<_>, _>>()?;
            if found.is_empty() {
                return Err(several.wrong("is empty"));
            }
            Ok(found)
        }
        (Some(_), Some(several)) => Err(several.wrong("stands beside `object`; name all objects in it")),
        (None, None) => Err(root.missing("object")),
    }
}

/// Refuses outputs that would be written over each other or over what they came from.
fn saved_once(file: &LaunchFile) -> Result<(), Error> {
    let mut taken = vec![&*file.place.file];
    taken.extend(file.objects.iter().map(|object| object.path.as_path()));
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
        let number = text.trim().parse::<u64>();
        number.map_err(|_| format!("is \"{text}\", not a number"))
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
        let seeds = value.array()?.map(|seed| seed.integer(0, u64::MAX));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
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
