//! Fake HIP libraries, compiled from C.

use rocmforge_hip_sys::{CORE_FUNCTIONS, OPTIONAL_FUNCTIONS};
use rocmforge_test_support::shared_library;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A library to compile: every core and optional function answers `hipSuccess` unless the test says otherwise.
pub(crate) struct Fake {
    left_out: Vec<&'static str>,
    bodies: Vec<(&'static str, String)>,
    tail: String,
}

impl Fake {
    pub(crate) fn new() -> Self {
        Self {
            left_out: Vec::new(),
            bodies: Vec::new(),
            tail: String::new(),
        }
    }

    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.left_out.push(name);
        self
    }

    /// A function with its own C definition.
    pub(crate) fn with(mut self, name: &'static str, definition: impl Into<String>) -> Self {
        self.bodies.push((name, definition.into()));
        self
    }

    /// More C at the end.
    pub(crate) fn and(mut self, source: &str) -> Self {
        self.tail.push_str(source);
        self
    }

    /// Answers `version` to `hipRuntimeGetVersion`, to tell libraries apart.
    pub(crate) fn version(self, version: i32) -> Self {
        let body = format!("unsigned hipRuntimeGetVersion(int* version) {{ *version = {version}; return 0; }}");
        self.with("hipRuntimeGetVersion", body)
    }

    fn source(&self) -> String {
        let mut source = String::from("#include <stddef.h>\n#include <stdlib.h>\n#include <unistd.h>\n");
        for name in CORE_FUNCTIONS.iter().chain(OPTIONAL_FUNCTIONS) {
            if self.left_out.contains(name) {
                continue;
            }
            match self.bodies.iter().find(|(own, _)| own == name) {
                Some((_, body)) => source.push_str(body),
                None => write!(source, "unsigned {name}() {{ return 0; }}").unwrap(),
            }
            source.push('\n');
        }
        source + &self.tail
    }

    /// Compiles it to `path`, making its folder.
    pub(crate) fn build(&self, path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let c = path.with_extension("c");
        std::fs::write(&c, self.source()).unwrap();
        shared_library(&c, path, &[]);
        path.to_owned()
    }
}
