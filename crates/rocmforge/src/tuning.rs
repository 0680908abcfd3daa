//! Tuning files: what was measured on a card, kept for this card, driver and build.
//!
//! `rocmforge tune` writes one for each card. It is JSON with the card's name, processor and driver, the kernels' [fingerprint](Pack::fingerprint), and each
//! value that was measured. A file that is damaged, or of another card, driver or build, is refused as a whole: built-in rules hold then.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use rocmforge_kernels::{KernelError, Kernels, Measured, Pack, Parameter, Tuning};
use serde::{Deserialize, Serialize};

/// The version of the format.
const FORMAT: u32 = 1;
/// The most bytes that are read.
const LONGEST: u64 = 64 << 10;

/// What a measurement is of: another card, driver or build has its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// The card's name.
    pub card: String,
    /// Its processor, with features.
    pub processor: String,
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// The version of HIP or CUDA that the driver states.
    pub driver: i32,
    /// The version of this program, the [revision](Tuning::REVISION) of what is measured, and the kernels' fingerprint.
    pub build: String,
}

impl Subject {
    /// What kernels run on now.
    #[must_use]
    pub fn of(kernels: &Kernels) -> Self {
        let device = kernels.backend().device();
        Self {
            card: device.name.clone(),
            processor: device.arch_full.clone(),
            multiprocessors: device.multiprocessors,
            driver: device.hip_version,
            build: format!(
                "{} {} {}",
                env!("CARGO_PKG_VERSION"),
                Tuning::REVISION,
                Pack::fingerprint(kernels.pack())
            ),
        }
    }

    /// What a file is of that is not of this: the first difference, the file's first.
    fn differs(&self, file: &Self) -> Option<(&'static str, String, String)> {
        let each = |subject: &Self| {
            [
                ("card", subject.card.clone()),
                ("processor", subject.processor.clone()),
                ("multiprocessors", subject.multiprocessors.to_string()),
                ("driver", subject.driver.to_string()),
                ("build", subject.build.clone()),
            ]
        };
        let mut pairs = each(file).into_iter().zip(each(self));
        let ((what, theirs), (_, ours)) = pairs.find(|(theirs, ours)| theirs != ours)?;
        Some((what, theirs, ours))
    }
}

/// One measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Value {
    parameter: String,
    value: u32,
    micros: f64,
    rule_micros: f64,
}

/// The contents of a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    format: u32,
    subject: Subject,
    values: Vec<Value>,
}

/// Why a file is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuningFileError {
    /// It cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// It is longer than any tuning file.
    #[error("{} has over {LONGEST} bytes: it is no tuning file", path.display())]
    TooLong {
        /// Its path.
        path: PathBuf,
    },
    /// It is not what `rocmforge tune` writes.
    #[error("{} is no tuning file: {why}", path.display())]
    Damaged {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// It is of something else than what runs here.
    #[error("{} is of another {what}: {theirs}, here it is {ours}", path.display())]
    Foreign {
        /// Its path.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What the file has.
        theirs: String,
        /// What is here.
        ours: String,
    },
    /// A value makes no sense.
    #[error("{}: {source}", path.display())]
    Value {
        /// Its path.
        path: PathBuf,
        /// Why.
        source: Box<KernelError>,
    },
}

/// The file in a folder for what these kernels run on: the card's name and processor, in letters that every file system takes.
#[must_use]
pub fn file(folder: &Path, kernels: &Kernels) -> PathBuf {
    let device = kernels.backend().device();
    file_of(folder, [&device.name, &device.arch_full], device.multiprocessors)
}

fn file_of(folder: &Path, names: [&str; 2], multiprocessors: u32) -> PathBuf {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_lowercase(),
        false => '-',
    };
    let [card, processor] = names.map(|name| name.chars().take(64).map(plain).collect::<String>());
    folder.join(format!("{card}-{processor}-{multiprocessors}.json"))
}

/// The tuning that was kept for what these kernels run on; `None` where there is no file.
///
/// # Errors
/// [`TuningFileError`]: there is a file, and it is refused.
pub fn load(folder: &Path, kernels: &Kernels) -> Result<Option<Tuning>, TuningFileError> {
    let path = file(folder, kernels);
    let failed = |source| TuningFileError::File {
        path: path.clone(),
        source,
    };
    let mut text = String::new();
    match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file
            .and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text))
            .map_err(failed)?,
    };
    if text.len() as u64 > LONGEST {
        return Err(TuningFileError::TooLong { path });
    }
    read(&text, &Subject::of(kernels), &path).map(Some)
}

/// The tuning that a text states.
fn read(text: &str, subject: &Subject, path: &Path) -> Result<Tuning, TuningFileError> {
    let path = || path.to_owned();
    let damaged = |why: String| TuningFileError::Damaged { path: path(), why };
    let contents: Contents = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if contents.format != FORMAT {
        return Err(damaged(format!(
            "its format is {}, and {FORMAT} is known",
            contents.format
        )));
    }
    if let Some((what, theirs, ours)) = subject.differs(&contents.subject) {
        let path = path();
        return Err(TuningFileError::Foreign {
            path,
            what,
            theirs,
            ours,
        });
    }
    let mut tuning = Tuning::RULES;
    for Value {
        parameter,
        value,
        micros,
        rule_micros,
    } in contents.values
    {
        let known =
            Parameter::of_name(&parameter).ok_or_else(|| damaged(format!("no parameter is called {parameter:?}")))?;
        if tuning.micros(known).is_some() {
            return Err(damaged(format!("{parameter} stands there twice")));
        }
        let set = tuning.set(known, value, [micros, rule_micros]);
        set.map_err(|source| TuningFileError::Value {
            path: path(),
            source: Box::new(source),
        })?;
    }
    Ok(tuning)
}

/// Keeps what was measured for what these kernels run on, in place of what was kept before, and gives the file's path.
///
/// # Errors
/// [`TuningFileError::File`]; what was there is as before.
pub fn keep(folder: &Path, kernels: &Kernels, measured: &[Measured]) -> Result<PathBuf, TuningFileError> {
    let path = file(folder, kernels);
    let mut tuning = Tuning::RULES;
    let mut values = Vec::new();
    for one in measured {
        let set = one.apply(&mut tuning);
        set.map_err(|source| TuningFileError::Value {
            path: path.clone(),
            source: Box::new(source),
        })?;
        let [micros, rule_micros] = tuning.micros(one.parameter).unwrap_or_default();
        values.push(Value {
            parameter: one.parameter.name().to_owned(),
            value: one.chosen,
            micros,
            rule_micros,
        });
    }
    let contents = Contents {
        format: FORMAT,
        subject: Subject::of(kernels),
        values,
    };
    let text = serde_json::to_string_pretty(&contents).unwrap_or_default();
    // In one step: whoever reads meanwhile has the old file or the new one.
    let write = || -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        // Another process may have the same number in a container.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let temporary = path.with_extension(format!("{}-{}.new", std::process::id(), now.as_nanos()));
        let written = File::create_new(&temporary).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()
        });
        let moved = written.and_then(|()| std::fs::rename(&temporary, &path));
        if moved.is_err() {
            // Nothing else can be done about what is left.
            let _ = std::fs::remove_file(&temporary);
        }
        moved
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => Err(TuningFileError::File { path, source }),
    }
}

/// Forgets what was kept for what these kernels run on. Gives the path of the file that was there.
///
/// # Errors
/// [`TuningFileError::File`].
pub fn forget(folder: &Path, kernels: &Kernels) -> Result<Option<PathBuf>, TuningFileError> {
    let path = file(folder, kernels);
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(Some(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TuningFileError::File { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn subject() -> Subject {
        Subject {
            card: "A Radeon / of a test".to_owned(),
            processor: "gfx1100".to_owned(),
            multiprocessors: 48,
            driver: 60_241_134,
            build: "0.1.0 0123456789abcdef".to_owned(),
        }
    }

    fn good() -> Json {
        let value = json!({ "parameter": "tiles_from", "value": 17, "micros": 9.5, "rule_micros": 12.0 });
        json!({ "format": 1, "subject": subject(), "values": [value] })
    }

    #[test]
    fn what_was_measured_holds_and_the_rest_is_by_rule() {
        let tuning = read(&good().to_string(), &subject(), Path::new("x")).unwrap();
        assert_eq!(tuning.value(Parameter::TilesFrom), 17);
        assert_eq!(tuning.micros(Parameter::TilesFrom), Some([9.5, 12.0]));
        assert_eq!(tuning.micros(Parameter::TilesTo), None);
    }

    #[test]
    fn another_card_driver_or_build_is_refused_by_name() {
        for (field, other) in [
            ("card", json!("B")),
            ("processor", json!("gfx1101")),
            ("multiprocessors", json!(60)),
            ("driver", json!(1)),
            ("build", json!("0.1.0 0")),
        ] {
            let mut file = good();
            file["subject"][field] = other;
            let error = read(&file.to_string(), &subject(), Path::new("x"))
                .unwrap_err()
                .to_string();
            assert!(error.contains(&format!("of another {field}")), "{error}");
        }
    }

    #[test]
    fn a_file_that_makes_no_sense_is_refused_as_a_whole() {
        let with = |path: &str, value: Json| {
            let mut file = good();
            *file.pointer_mut(path).unwrap() = value;
            file.to_string()
        };
        let mut more = good();
        more["values"]
            .as_array_mut()
            .unwrap()
            .push(json!({ "parameter": "tiles_to", "value": 7, "micros": 1, "rule_micros": 1 }));
        let mut twice = good();
        let first = twice["values"][0].clone();
        twice["values"].as_array_mut().unwrap().push(first);
        let mut unknown = good();
        unknown["values"][0]["speed"] = json!(1);
        for (text, why) in [
            (String::new(), "no tuning file"),
            ("[1, 2".to_owned(), "no tuning file"),
            (with("/format", json!(2)), "its format is 2"),
            (
                with("/values/0/parameter", json!("warp_speed")),
                "no parameter is called \"warp_speed\"",
            ),
            (with("/values/0/value", json!(18)), "tiles_from = 18"),
            (with("/values/0/micros", json!(-1.0)), "-1 and 12 us"),
            (with("/subject/driver", json!("new")), "no tuning file"),
            (more.to_string(), "tiles_to = 7"),
            (twice.to_string(), "tiles_from stands there twice"),
            (unknown.to_string(), "unknown field `speed`"),
        ] {
            let error = read(&text, &subject(), Path::new("x")).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} does not say {why:?}");
        }
    }

    #[test]
    fn a_cards_file_has_a_name_for_every_file_system() {
        let path = file_of(Path::new("folder"), ["A Radeon / of a test", "gfx1100"], 48);
        assert_eq!(path, Path::new("folder/a-radeon---of-a-test-gfx1100-48.json"));
    }

    #[cfg(feature = "sim")]
    #[test]
    fn what_is_kept_is_loaded_until_it_is_forgotten() {
        let device = crate::device::open("sim").unwrap();
        let kernels = Kernels::load(device.backend()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path(), &kernels).unwrap(), None);
        let measured = Measured {
            parameter: Parameter::AttentionBlocks,
            times: vec![(2, 10.0), (4, 8.0)],
            chosen: 4,
        };
        let path = keep(folder.path(), &kernels, &[measured]).unwrap();
        let loaded = load(folder.path(), &kernels).unwrap().unwrap();
        assert_eq!(loaded.value(Parameter::AttentionBlocks), 4);
        std::fs::write(&path, "x".repeat(70_000)).unwrap();
        assert!(matches!(
            load(folder.path(), &kernels),
            Err(TuningFileError::TooLong { .. })
        ));
        assert_eq!(forget(folder.path(), &kernels).unwrap(), Some(path));
        assert_eq!(forget(folder.path(), &kernels).unwrap(), None);
        assert_eq!(load(folder.path(), &kernels).unwrap(), None);
    }
}
