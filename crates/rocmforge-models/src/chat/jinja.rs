//! Jinja templates as Python runs them for transformers, with bounds on depth, work and memory.
//!
//! A parser makes a syntax tree, an interpreter walks it. Both count how deeply they are nested, and run on a stack of their own, so that no
//! template overflows one. The interpreter charges every value and every operation to a meter before it spends them.
//!
//! Why not the library `minijinja`: it has no place to charge `~`, `+`, `==` and lists, its parser and its values recurse without a bound, and
//! it differs from Python in what it prints.

mod ast;
mod braces;
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

pub(super) use error::{Cause, Error};
pub(super) use input::{Input, Name};
pub(super) use meter::Used;
pub use meter::{MAX_BYTES, MAX_WORK};

/// Bytes of the stack for one parse or rendering. It is address space; of it only what is used becomes memory.
const STACK: usize = 64 << 20;

/// A parsed template.
#[derive(Debug)]
pub(super) struct Template {
    statements: Vec<ast::Statement>,
}

/// A rendered text, and what it took.
#[derive(Debug)]
pub(super) struct Rendered {
    pub(super) text: Result<String, Error>,
    pub(super) used: Used,
}

impl Template {
    /// Parses a source, which must be short: the tree has some hundred bytes for each of the source.
    pub(super) fn parse(source: &str) -> io::Result<Result<Self, Error>> {
        on_own_stack(|| parser::parse(source).map(|statements| Self { statements }))
    }

    /// Renders the template. `work` is what was done before for the same prompt, `marks` are characters that stand for visible ones.
    pub(super) fn render(
        &self,
        variables: &[(&str, Input<'_>)],
        clock: &(dyn Fn(&str) -> Result<String, String> + Sync),
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
        clock: &dyn Fn(&str) -> Result<String, String>,
    ) -> Result<String, Error> {
        let mut values = Vec::new();
        for (name, input) in variables {
            values.push((*name, input.value(meter)?));
        }
        interpreter::Interpreter::new(meter, clock)?.render(&self.statements, values)
    }
}

/// Runs on a thread whose stack is large enough for the deepest nesting that is allowed, wherever the caller's stack ends.
fn on_own_stack<T: Send>(run: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("chat-template".to_owned())
            .stack_size(STACK);
        let thread = thread.spawn_scoped(scope, run)?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}
