//! Values of a rendering, as Python has them. Lists and dicts cannot be changed, so values form no circles; each knows how
//! deeply it is nested, and is charged for its bytes while it lives.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use indexmap::{Equivalent, IndexMap};

use super::ast;
use super::error::{Cause, Error, wrong};
use super::interpreter::Scope;
use super::meter::{Charge, Meter};

/// The deepest nesting of lists and dicts.
pub(crate) const MAX_VALUE_DEPTH: usize = 120;

/// Bytes charged for a text beside its own.
const TEXT: usize = 96;

/// Bytes charged for an item of a list, and for an entry of a dict.
const ITEM: usize = size_of::<Value>();
const ENTRY: usize = 6 * ITEM;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'t> {
    /// The value of a name that is not set.
    Undefined,
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Rc<Text>),
    List(Rc<Items<'t>>),
    Tuple(Rc<Items<'t>>),
    Dict(Rc<Dict<'t>>),
    /// `d.keys()`, `d.values()`, `d.items()`
    View(View, Rc<Dict<'t>>),
    Range(Range),
    /// What can be passed once.
    Iterator(Rc<Once<'t>>),
    /// Index into the rendering's namespaces.
    Namespace(usize),
    Macro(Rc<MacroValue<'t>>),
    /// A function that every template has.
    Function(&'static str),
    /// A method and the value it belongs to.
    Method(Rc<(Value<'t>, &'static str)>),
    Loop(Rc<Loop<'t>>),
}

/// Views of a dict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Keys,
    Values,
    Items,
}

/// A text.
#[derive(Debug)]
pub(super) struct Text {
    body: Body,
    /// Whether the filter `safe` or `escape` made it: Python's `Markup`, which escapes what is added to it.
    pub(super) markup: bool,
    _charge: Charge,
}

#[derive(Debug)]
enum Body {
    Own(String),
    /// A constant of the template.
    Shared(Arc<str>),
}

/// The items of a list or tuple.
#[derive(Debug)]
pub(super) struct Items<'t> {
    pub(super) items: Vec<Value<'t>>,
    depth: usize,
    _charge: Charge,
}

/// A dict, in the order in which its keys were first given.
#[derive(Debug)]
pub(super) struct Dict<'t> {
    pub(super) entries: IndexMap<Key<'t>, Value<'t>>,
    depth: usize,
    _charge: Charge,
}

/// Items that can be passed once, as Python's generators.
#[derive(Debug)]
pub(super) struct Once<'t> {
    pub(super) items: Rc<Items<'t>>,
    pub(super) next: Cell<usize>,
}

/// `range(start, stop, step)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: i64,
    pub(super) stop: i64,
    pub(super) step: i64,
}

/// A macro with the variables around its definition.
#[derive(Debug)]
pub(super) struct MacroValue<'t> {
    pub(super) definition: &'t ast::Macro,
    pub(super) scope: Weak<Scope<'t>>,
}

/// The variable `loop`.
#[derive(Debug)]
pub(super) struct Loop<'t> {
    pub(super) items: Rc<Items<'t>>,
    pub(super) index: Cell<usize>,
    /// Loops of the same statement around it.
    pub(super) depth: usize,
    /// The statement, if it is recursive, and the variables around it.
    pub(super) statement: Option<(&'t ast::For, Weak<Scope<'t>>)>,
}

/// A key of a dict: a text, a number, a bool, none, or a short tuple of these.
#[derive(Clone, Debug)]
pub(super) struct Key<'t>(Value<'t>);

impl<'t> Key<'t> {
    /// The value as a key.
    pub(super) fn new(value: Value<'t>) -> Result<Self, Error> {
        let simple = |value: &Value<'t>| {
            matches!(
                value,
                Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_)
            )
        };
        let allowed = match &value {
            Value::Tuple(items) => items.items.len() <= 8 && items.items.iter().all(simple),
            value => simple(value),
        };
        if allowed {
            return Ok(Self(value));
        }
        Err(wrong(format!(
            "a value of type {} is no key of a dict",
            value.type_name()
        )))
    }

    /// The value.
    pub(super) fn value(&self) -> &Value<'t> {
        &self.0
    }
}

/// Parts of a key that decide whether two are equal: numbers are equal whatever their types are.
fn hash_key<H: Hasher>(value: &Value<'_>, state: &mut H) {
    match value {
        Value::Text(text) => text.as_str().hash(state),
        Value::Bool(value) => i128::from(*value).hash(state),
        Value::Int(value) => value.hash(state),
        Value::Float(value) if value.fract() == 0.0 && value.abs() < 1e38 => (*value as i128).hash(state),
        Value::Float(value) => value.to_bits().hash(state),
        Value::Tuple(items) => items.items.iter().for_each(|item| hash_key(item, state)),
        _ => 0_u8.hash(state),
    }
}

fn same_key(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::None, Value::None) => true,
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str(),
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| same_key(a, b))
        }
        _ => match (a.number(), b.number()) {
            (Some(a), Some(b)) => a.compare(b) == Some(std::cmp::Ordering::Equal),
            _ => false,
        },
    }
}

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_key(&self.0, state);
    }
}

impl PartialEq for Key<'_> {
    fn eq(&self, other: &Self) -> bool {
        same_key(&self.0, &other.0)
    }
}

impl Eq for Key<'_> {}

/// A key that is looked up by its text.
#[derive(Hash)]
struct TextKey<'a>(&'a str);

impl<'t> Equivalent<Key<'t>> for TextKey<'_> {
    fn equivalent(&self, key: &Key<'t>) -> bool {
        matches!(&key.0, Value::Text(text) if text.as_str() == self.0)
    }
}

/// A number, with bools as integers.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    /// As a float.
    pub(super) fn float(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The order of two numbers.
    pub(super) fn compare(self, other: Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => Some(a.cmp(&b)),
            (a, b) => a.float().partial_cmp(&b.float()),
        }
    }
}

impl Range {
    /// How many numbers it has.
    pub(super) fn len(self) -> usize {
        let (start, stop, step) = (i128::from(self.start), i128::from(self.stop), i128::from(self.step));
        let length = if step > 0 {
            (stop - start + step - 1) / step
        } else {
            (start - stop - step - 1) / -step
        };
        usize::try_from(length.max(0)).unwrap_or(usize::MAX)
    }

    /// One of its numbers.
    pub(super) fn get(self, index: usize) -> i128 {
        i128::from(self.start) + index as i128 * i128::from(self.step)
    }
}

impl Text {
    /// The text.
    pub(super) fn as_str(&self) -> &str {
        match &self.body {
            Body::Own(text) => text,
            Body::Shared(text) => text,
        }
    }
}

impl<'t> Items<'t> {
    fn new(items: Vec<Value<'t>>, charge: Charge) -> Result<Rc<Self>, Error> {
        let depth = 1 + items.iter().map(Value::depth).max().unwrap_or(0);
        Ok(Rc::new(Self {
            depth: check_depth(depth)?,
            items,
            _charge: charge,
        }))
    }
}

fn check_depth(depth: usize) -> Result<usize, Error> {
    if depth > MAX_VALUE_DEPTH {
        return Err(Error::new(Cause::Depth {
            what: "lists and dicts are",
            limit: MAX_VALUE_DEPTH,
        }));
    }
    Ok(depth)
}

impl<'t> Dict<'t> {
    /// The value of a key.
    pub(super) fn get(&self, key: &str) -> Option<&Value<'t>> {
        self.entries.get(&TextKey(key))
    }

    /// The value of a key that may be of any type.
    pub(super) fn get_value(&self, key: &Value<'t>) -> Option<&Value<'t>> {
        match key {
            Value::Text(text) => self.get(text.as_str()),
            key => self.entries.get(&Key::new(key.clone()).ok()?),
        }
    }
}

impl<'t> Value<'t> {
    /// A text that shares a constant of the template.
    pub(super) fn constant(meter: &Rc<Meter>, text: &Arc<str>) -> Result<Self, Error> {
        Ok(Value::Text(Rc::new(Text {
            body: Body::Shared(Arc::clone(text)),
            markup: false,
            _charge: meter.hold(TEXT)?,
        })))
    }

    /// A copy of a text.
    pub(super) fn text(meter: &Rc<Meter>, text: &str) -> Result<Self, Error> {
        let charge = meter.hold(TEXT + text.len())?;
        Ok(Self::of_string(text.to_owned(), false, charge))
    }

    /// A text that `make` makes, of at most `bytes` bytes.
    pub(super) fn made(meter: &Rc<Meter>, bytes: usize, make: impl FnOnce() -> String) -> Result<Self, Error> {
        let mut charge = meter.hold(TEXT.saturating_add(bytes))?;
        let text = make();
        charge.shrink_to(TEXT + text.capacity());
        Ok(Self::of_string(text, false, charge))
    }

    /// A text that is charged already.
    pub(super) fn of_string(text: String, markup: bool, charge: Charge) -> Self {
        Value::Text(Rc::new(Text {
            body: Body::Own(text),
            markup,
            _charge: charge,
        }))
    }

    /// Its text, if it is one.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// Whether it is a text that was marked as safe.
    pub(super) fn is_markup(&self) -> bool {
        matches!(self, Value::Text(text) if text.markup)
    }

    /// Its number, if it is one; bools are.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Value::Bool(value) => Some(Number::Int(i128::from(*value))),
            Value::Int(value) => Some(Number::Int(*value)),
            Value::Float(value) => Some(Number::Float(*value)),
            _ => None,
        }
    }

    /// Its integer, if it is one; bools are.
    pub(super) fn integer(&self) -> Option<i128> {
        match self.number() {
            Some(Number::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// How deeply lists and dicts are nested in it.
    fn depth(&self) -> usize {
        match self {
            Value::List(items) | Value::Tuple(items) => items.depth,
            Value::Dict(dict) => dict.depth,
            Value::View(_, dict) => dict.depth + 1,
            Value::Iterator(once) => once.items.depth,
            Value::Loop(state) => state.items.depth + 1,
            Value::Method(method) => method.0.depth() + 1,
            _ => 0,
        }
    }

    /// A method of a value.
    pub(super) fn method(self, name: &'static str) -> Result<Self, Error> {
        check_depth(self.depth() + 1)?;
        Ok(Value::Method(Rc::new((self, name))))
    }

    /// Whether it counts as true.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Undefined | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(value) => *value != 0,
            Value::Float(value) => *value != 0.0,
            Value::Text(text) => !text.as_str().is_empty(),
            Value::List(items) | Value::Tuple(items) => !items.items.is_empty(),
            Value::Dict(dict) | Value::View(_, dict) => !dict.entries.is_empty(),
            Value::Range(range) => range.len() > 0,
            Value::Iterator(_)
            | Value::Namespace(_)
            | Value::Macro(_)
            | Value::Function(_)
            | Value::Method(_)
            | Value::Loop(_) => true,
        }
    }

    /// Python's name of its type.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Undefined => "Undefined",
            Value::None => "NoneType",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float",
            Value::Text(_) => "str",
            Value::List(_) => "list",
            Value::Tuple(_) => "tuple",
            Value::Dict(_) => "dict",
            Value::View(View::Keys, _) => "dict_keys",
            Value::View(View::Values, _) => "dict_values",
            Value::View(View::Items, _) => "dict_items",
            Value::Range(_) => "range",
            Value::Iterator(_) => "generator",
            Value::Namespace(_) => "Namespace",
            Value::Macro(_) => "Macro",
            Value::Function(_) => "function",
            Value::Method(_) => "method",
            Value::Loop(_) => "LoopContext",
        }
    }

    /// How many items it has, if Python's `len` tells it.
    pub(super) fn len(&self, meter: &Meter) -> Result<Option<usize>, Error> {
        Ok(Some(match self {
            Value::Undefined => 0,
            Value::Text(text) => {
                meter.spend(text.as_str().len())?;
                text.as_str().chars().count()
            }
            Value::List(items) | Value::Tuple(items) => items.items.len(),
            Value::Dict(dict) | Value::View(_, dict) => dict.entries.len(),
            Value::Range(range) => range.len(),
            Value::Loop(state) => state.items.items.len(),
            _ => return Ok(None),
        }))
    }

    /// Whether it can be iterated over.
    pub(super) fn is_iterable(&self) -> bool {
        matches!(
            self,
            Value::Undefined
                | Value::Text(_)
                | Value::List(_)
                | Value::Tuple(_)
                | Value::Dict(_)
                | Value::View(..)
                | Value::Range(_)
                | Value::Iterator(_)
                | Value::Loop(_)
        )
    }

    /// What an iteration over it gives.
    pub(super) fn iterate(&self, meter: &Rc<Meter>) -> Result<Rc<Items<'t>>, Error> {
        let mut list = ListBuilder::new(meter)?;
        match self {
            Value::List(items) | Value::Tuple(items) => {
                // Whoever asks will look at each of them.
                meter.spend(ITEM * items.items.len())?;
                return Ok(Rc::clone(items));
            }
            Value::Iterator(once) => {
                let from = once.next.replace(once.items.items.len());
                if from == 0 {
                    return Ok(Rc::clone(&once.items));
                }
                for item in once.items.items.get(from..).unwrap_or_default() {
                    list.push(item.clone())?;
                }
            }
            Value::Undefined => {}
            Value::Text(text) => {
                for character in text.as_str().chars() {
                    list.push(Value::text(meter, character.encode_utf8(&mut [0; 4]))?)?;
                }
            }
            Value::Dict(dict) | Value::View(View::Keys, dict) => {
                for key in dict.entries.keys() {
                    list.push(key.0.clone())?;
                }
            }
            Value::View(View::Values, dict) => {
                for value in dict.entries.values() {
                    list.push(value.clone())?;
                }
            }
            Value::View(View::Items, dict) => {
                for (key, value) in &dict.entries {
                    let mut pair = ListBuilder::new(meter)?;
                    pair.push(key.0.clone())?;
                    pair.push(value.clone())?;
                    list.push(pair.tuple()?)?;
                }
            }
            Value::Range(range) => {
                for index in 0..range.len() {
                    list.push(Value::Int(range.get(index)))?;
                }
            }
            other => {
                return Err(wrong(format!(
                    "a value of type {} cannot be iterated over",
                    other.type_name()
                )));
            }
        }
        list.items()
    }
}

/// A list that grows, charged as it does.
pub(super) struct ListBuilder<'t> {
    items: Vec<Value<'t>>,
    charge: Charge,
}

impl<'t> ListBuilder<'t> {
    /// An empty list.
    pub(super) fn new(meter: &Rc<Meter>) -> Result<Self, Error> {
        Ok(Self {
            items: Vec::new(),
            charge: meter.hold(TEXT)?,
        })
    }

    /// Adds an item.
    pub(super) fn push(&mut self, value: Value<'t>) -> Result<(), Error> {
        if self.items.len() == self.items.capacity() {
            let capacity = (self.items.capacity() * 2).max(4);
            self.charge.add(capacity * ITEM)?;
            self.items.reserve_exact(capacity - self.items.len());
            self.charge.shrink_to(TEXT + self.items.capacity() * ITEM);
        }
        self.charge.meter().spend(ITEM)?;
        self.items.push(value);
        Ok(())
    }

    /// Adds the items of another.
    pub(super) fn extend(&mut self, items: &[Value<'t>]) -> Result<(), Error> {
        items.iter().try_for_each(|item| self.push(item.clone()))
    }

    /// The items, to be put into order.
    pub(super) fn as_mut(&mut self) -> &mut Vec<Value<'t>> {
        &mut self.items
    }

    /// The items.
    pub(super) fn items(self) -> Result<Rc<Items<'t>>, Error> {
        Items::new(self.items, self.charge)
    }

    /// A list.
    pub(super) fn list(self) -> Result<Value<'t>, Error> {
        Ok(Value::List(self.items()?))
    }

    /// A tuple.
    pub(super) fn tuple(self) -> Result<Value<'t>, Error> {
        Ok(Value::Tuple(self.items()?))
    }

    /// What can be passed once.
    pub(super) fn once(self) -> Result<Value<'t>, Error> {
        Ok(Value::Iterator(Rc::new(Once {
            items: self.items()?,
            next: Cell::new(0),
        })))
    }
}

/// A dict that grows, charged as it does.
pub(super) struct DictBuilder<'t> {
    entries: IndexMap<Key<'t>, Value<'t>>,
    charge: Charge,
}

impl<'t> DictBuilder<'t> {
    /// An empty dict.
    pub(super) fn new(meter: &Rc<Meter>) -> Result<Self, Error> {
        Ok(Self {
            entries: IndexMap::new(),
            charge: meter.hold(TEXT)?,
        })
    }

    /// Sets the value of a key; tells whether the key is new.
    pub(super) fn insert(&mut self, key: Value<'t>, value: Value<'t>) -> Result<bool, Error> {
        if let Value::Text(text) = &key {
            self.charge.meter().spend(text.as_str().len())?;
        }
        let key = Key::new(key)?;
        self.charge.add(ENTRY)?;
        Ok(self.entries.insert(key, value).is_none())
    }

    /// The dict.
    pub(super) fn finish(self) -> Result<Rc<Dict<'t>>, Error> {
        let depths = self.entries.values().map(Value::depth);
        let depth = 1 + depths.max().unwrap_or(0);
        Ok(Rc::new(Dict {
            depth: check_depth(depth)?,
            entries: self.entries,
            _charge: self.charge,
        }))
    }
}

/// A text that grows, charged before it does.
pub(super) struct TextBuilder {
    text: String,
    charge: Charge,
}

impl TextBuilder {
    /// An empty text.
    pub(super) fn new(meter: &Rc<Meter>) -> Result<Self, Error> {
        Ok(Self {
            text: String::new(),
            charge: meter.hold(TEXT)?,
        })
    }

    /// The meter.
    pub(super) fn meter(&self) -> Rc<Meter> {
        Rc::clone(self.charge.meter())
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        let length = self.text.len().saturating_add(bytes);
        if length > self.text.capacity() {
            let capacity = length.max(self.text.capacity().saturating_mul(2)).max(16);
            // Both are held while the text moves.
            self.charge.add(capacity)?;
            self.text.reserve_exact(capacity - self.text.len());
            self.charge.shrink_to(TEXT + self.text.capacity());
        }
        self.charge.meter().spend(bytes)
    }

    /// Adds a text.
    pub(super) fn push(&mut self, text: &str) -> Result<(), Error> {
        self.reserve(text.len())?;
        self.text.push_str(text);
        Ok(())
    }

    /// Adds a character.
    pub(super) fn push_char(&mut self, character: char) -> Result<(), Error> {
        // One at a time costs more than a byte.
        self.reserve(character.len_utf8())?;
        self.charge.meter().spend(3)?;
        self.text.push(character);
        Ok(())
    }

    /// Adds a text several times.
    pub(super) fn repeat(&mut self, text: &str, times: usize) -> Result<(), Error> {
        if text.is_empty() {
            return Ok(());
        }
        self.reserve(text.len().saturating_mul(times))?;
        for _ in 0..times {
            self.text.push_str(text);
        }
        Ok(())
    }

    /// The text so far.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    /// The text as a value.
    pub(super) fn finish<'t>(self) -> Value<'t> {
        Value::of_string(self.text, false, self.charge)
    }

    /// The text as a value that the filter `safe` made.
    pub(super) fn finish_markup<'t>(self) -> Value<'t> {
        Value::of_string(self.text, true, self.charge)
    }

    /// The text.
    pub(super) fn into_string(self) -> String {
        self.text
    }
}
