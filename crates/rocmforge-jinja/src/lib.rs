//! Jinja templates as Python runs them for transformers, with bounds on depth, work and memory.
//!
//! A parser makes a syntax tree, an interpreter walks it. Both count how deeply they are nested, and run on a stack of their own, so that no
//! template overflows one. The interpreter charges every value and every operation to a meter before it spends them.
//!
//! Why not the library `minijinja`: it has no place to charge `~`, `+`, `==` and lists, its parser and its values recurse without a bound, and
//! it differs from Python in what it prints.
//!
//! ```
//! use std::time::SystemTime;
//!
//! use rocmforge_jinja::{Input, Template};
//!
//! let template = Template::parse("{% for n in names %}{{ loop.index }} {{ n | upper }};{% endfor %}")??;
//! let names = ["ann", "bob"].map(Input::text).to_vec();
//! let rendered = template.render(&[("names", Input::List(names))], &SystemTime::now, 0, &[])?;
//! assert_eq!(rendered.text?, "1 ANN;2 BOB;");
//! assert!(rendered.used.bytes < 10_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ast;
mod braces;
mod date;
mod error;
mod escape;
mod filters;
mod format_spec;
mod given;
mod input;
mod interpreter;
mod json;
mod lexer;
mod meter;
mod methods;
mod operators;
mod parser;
mod percent;
mod predicates;
mod text;
mod value;

use std::io;
use std::panic::resume_unwind;
use std::time::SystemTime;

pub use error::{Cause, Error};
pub use input::{Input, Name};
pub use meter::{MAX_BYTES, MAX_WORK, Used};

/// A date or a time of day in UTC, as `strftime_now` of a template shows it.
///
/// # Errors
/// A letter of the format that is not known.
pub fn strftime(time: SystemTime, format: &str) -> Result<String, String> {
    date::format(time, format)
}

/// Bytes of the stack for one parse or rendering. It is address space; of it only what is used becomes memory.
const STACK: usize = 64 << 20;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    statements: Vec<ast::Statement>,
}

/// A rendered text, and what it took.
#[derive(Debug)]
pub struct Rendered {
    /// The text; the error where the template failed.
    pub text: Result<String, Error>,
    /// What it took, also where it failed.
    pub used: Used,
}

impl Template {
    /// Parses a source, which must be short: the tree has some hundred bytes for each of the source.
    ///
    /// # Errors
    /// The outer one: a thread cannot be started. The inner one: the source is no template, or is nested too deeply.
    pub fn parse(source: &str) -> io::Result<Result<Self, Error>> {
        on_own_stack(|| parser::parse(source).map(|statements| Self { statements }))
    }

    /// Renders the template. `clock` is what `strftime_now` shows, in UTC; `work` is what was done before under the same limit; `marks` are
    /// characters that stand for visible ones: a template cannot strip them as it strips space.
    ///
    /// # Errors
    /// A thread cannot be started. Errors of the template are in [`Rendered::text`].
    pub fn render(
        &self,
        variables: &[(&str, Input<'_>)],
        clock: &(dyn Fn() -> SystemTime + Sync),
        work: u64,
        marks: &[char],
    ) -> io::Result<Rendered> {
        on_own_stack(|| {
            let meter = meter::Meter::new(work, marks);
            let text = self.run(&meter, variables, clock);
            Rendered {
                text,
                used: meter.used(),
            }
        })
    }

    fn run(
        &self,
        meter: &std::rc::Rc<meter::Meter>,
        variables: &[(&str, Input<'_>)],
        clock: &dyn Fn() -> SystemTime,
    ) -> Result<String, Error> {
        let clock = |format: &str| date::format(clock(), format);
        let mut values = Vec::new();
        for (name, input) in variables {
            values.push((*name, input.value(meter)?));
        }
        interpreter::Interpreter::new(meter, &clock)?.render(&self.statements, values)
    }
}

/// Runs on a thread whose stack is large enough for the deepest nesting that is allowed, wherever the caller's stack ends.
fn on_own_stack<T: Send>(run: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("template".to_owned())
            .stack_size(STACK);
        let thread = thread.spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
