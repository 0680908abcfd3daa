//! Arguments that a filter, a test, a method or a function is called with.

use std::rc::Rc;

use super::error::{Error, wrong};
use super::value::Value;

/// Arguments of one call.
#[derive(Debug, Default)]
pub(super) struct Given<'t> {
    pub(super) positional: Vec<Value<'t>>,
    pub(super) named: Vec<(Rc<str>, Value<'t>)>,
}

impl<'t> Given<'t> {
    /// The arguments by the names of the parameters, `None` for those that are not given.
    pub(super) fn bind<const N: usize>(
        self,
        function: &str,
        names: [&str; N],
    ) -> Result<[Option<Value<'t>>; N], Error> {
        if self.positional.len() > N {
            return Err(wrong(format!(
                "{function} takes {N} arguments, not {}",
                self.positional.len()
            )));
        }
        let mut bound = [const { None }; N];
        for (place, value) in bound.iter_mut().zip(self.positional) {
            *place = Some(value);
        }
        for (name, value) in self.named {
            let place = names.iter().position(|known| **known == *name);
            let place = place.ok_or_else(|| wrong(format!("{function} has no argument {name:?}")))?;
            if bound[place].replace(value).is_some() {
                return Err(wrong(format!("{function} is given {name:?} twice")));
            }
        }
        Ok(bound)
    }

    /// No arguments.
    pub(super) fn none(self, function: &str) -> Result<(), Error> {
        self.bind::<0>(function, []).map(drop)
    }

    /// One argument that must be given.
    pub(super) fn one(self, function: &str, name: &str) -> Result<Value<'t>, Error> {
        let [value] = self.bind(function, [name])?;
        value.ok_or_else(|| wrong(format!("{function} needs the argument {name:?}")))
    }
}

/// The argument as a text.
pub(super) fn text<'v>(function: &str, value: &'v Value<'_>) -> Result<&'v str, Error> {
    let found = value.as_str();
    found.ok_or_else(|| wrong(format!("{function} wants a text, not {}", value.type_name())))
}

/// The argument as an integer.
pub(super) fn integer(function: &str, value: &Value<'_>) -> Result<i128, Error> {
    let found = value.integer();
    found.ok_or_else(|| wrong(format!("{function} wants an integer, not {}", value.type_name())))
}

/// A length that an argument gives: 0 for negative ones.
pub(super) fn length(function: &str, value: &Value<'_>) -> Result<usize, Error> {
    Ok(usize::try_from(integer(function, value)?.max(0)).unwrap_or(usize::MAX))
}
