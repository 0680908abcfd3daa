//! Values of expressions.

use std::rc::Rc;

use super::super::ast::{Const, Expr, Step};
use super::super::error::{Error, wrong};
use super::super::meter::STEP;
use super::super::operators::{arithmetic, charge_key, compare, item_at, signed, slice};
use super::super::text::write_str;
use super::super::value::{DictBuilder, ListBuilder, TextBuilder, Value};
use super::super::{methods, predicates};
use super::{Interpreter, Scope};

/// Functions that every template has.
const FUNCTIONS: [&str; 8] = [
    "cycler",
    "dict",
    "joiner",
    "lipsum",
    "namespace",
    "raise_exception",
    "range",
    "strftime_now",
];

impl<'t> Interpreter<'t, '_> {
    /// The value of an expression.
    pub(super) fn expression(&mut self, expr: &'t Expr, scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        match expr {
            // Leaves need no further stack.
            Expr::Const(value) => {
                self.meter.spend(STEP)?;
                self.constant(value)
            }
            Expr::Name(name) => self.name(name, scope),
            other => self.nested(|this| this.compound(other, scope)),
        }
    }

    fn constant(&self, value: &Const) -> Result<Value<'t>, Error> {
        Ok(match value {
            Const::None => Value::None,
            Const::Bool(value) => Value::Bool(*value),
            Const::Int(value) => Value::Int(*value),
            Const::Float(value) => Value::Float(*value),
            Const::Text(text) => Value::constant(&self.meter, text)?,
        })
    }

    fn compound(&mut self, expr: &'t Expr, scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        match expr {
            Expr::Const(value) => self.constant(value),
            Expr::Name(name) => self.name(name, scope),
            Expr::List(items) => self.list(items, scope)?.list(),
            Expr::Tuple(items) => self.list(items, scope)?.tuple(),
            Expr::Dict(pairs) => {
                let mut dict = DictBuilder::new(&self.meter)?;
                for (key, value) in pairs {
                    let key = self.expression(key, scope)?;
                    let value = self.expression(value, scope)?;
                    dict.insert(key, value)?;
                }
                Ok(Value::Dict(dict.finish()?))
            }
            Expr::Not(operand) => Ok(Value::Bool(!self.expression(operand, scope)?.is_true())),
            Expr::Negative(operand) => signed(&self.expression(operand, scope)?, true),
            Expr::Positive(operand) => signed(&self.expression(operand, scope)?, false),
            Expr::Arithmetic(first, rest) => {
                let mut value = self.expression(first, scope)?;
                for (operator, operand) in rest {
                    let operand = self.expression(operand, scope)?;
                    value = arithmetic(&self.meter, *operator, &value, &operand)?;
                }
                Ok(value)
            }
            Expr::Concat(operands) => {
                let mut out = TextBuilder::new(&self.meter)?;
                for operand in operands {
                    let value = self.expression(operand, scope)?;
                    write_str(&value, &mut out)?;
                }
                Ok(out.finish())
            }
            Expr::And(operands) => self.first_that(operands, false, scope),
            Expr::Or(operands) => self.first_that(operands, true, scope),
            Expr::Compare(first, rest) => {
                let mut left = self.expression(first, scope)?;
                for (comparison, operand) in rest {
                    let right = self.expression(operand, scope)?;
                    if !compare(&self.meter, *comparison, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            Expr::Conditional { test, then, otherwise } => {
                if self.expression(test, scope)?.is_true() {
                    return self.expression(then, scope);
                }
                match otherwise {
                    Some(otherwise) => self.expression(otherwise, scope),
                    None => Ok(Value::Undefined),
                }
            }
            Expr::Postfix(base, steps) => {
                let mut value = self.expression(base, scope)?;
                for step in steps {
                    self.meter.spend(STEP)?;
                    value = self.step(step, value, scope)?;
                }
                Ok(value)
            }
        }
    }

    fn list(&mut self, items: &'t [Expr], scope: &Rc<Scope<'t>>) -> Result<ListBuilder<'t>, Error> {
        let mut list = ListBuilder::new(&self.meter)?;
        for item in items {
            let value = self.expression(item, scope)?;
            list.push(value)?;
        }
        Ok(list)
    }

    /// The first operand whose truth is `wanted`, or the last.
    fn first_that(&mut self, operands: &'t [Expr], wanted: bool, scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        let mut value = Value::Undefined;
        for operand in operands {
            value = self.expression(operand, scope)?;
            if value.is_true() == wanted {
                break;
            }
        }
        Ok(value)
    }

    /// The value of a name: a variable, one that the rendering was given, or a function of every template.
    pub(super) fn name(&self, name: &str, scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        let found = scope.get(&self.meter, name)?;
        let function = || FUNCTIONS.iter().find(|known| **known == name).copied();
        Ok(found
            .or_else(|| function().map(Value::Function))
            .unwrap_or(Value::Undefined))
    }

    /// What follows an expression.
    pub(super) fn step(&mut self, step: &'t Step, value: Value<'t>, scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        match step {
            Step::Attribute(name) => self.attribute(&value, name),
            Step::Item(key) => {
                let key = self.expression(key, scope)?;
                self.item(&value, &key)
            }
            Step::Slice(bounds) => {
                let mut given = [Value::None, Value::None, Value::None];
                for (bound, expr) in given.iter_mut().zip(bounds) {
                    if let Some(expr) = expr {
                        *bound = self.expression(expr, scope)?;
                    }
                }
                slice(&self.meter, &value, given)
            }
            Step::Call(arguments) => {
                let given = self.arguments(arguments, scope)?;
                self.call(&value, given)
            }
            Step::Filter(name, arguments) => {
                let given = self.arguments(arguments, scope)?;
                self.filter(name, &value, given)
            }
            Step::Test {
                name,
                arguments,
                negated,
            } => {
                let given = self.arguments(arguments, scope)?;
                Ok(Value::Bool(predicates::call(self, name, &value, given)? != *negated))
            }
        }
    }

    /// `value.name`: a method or attribute, or else an item.
    pub(in super::super) fn attribute(&mut self, value: &Value<'t>, name: &str) -> Result<Value<'t>, Error> {
        let found = self.attribute_only(value, name)?;
        match (&found, value) {
            (Value::Undefined, Value::Dict(dict)) => {
                self.meter.spend(name.len())?;
                Ok(dict.get(name).cloned().unwrap_or(Value::Undefined))
            }
            _ => Ok(found),
        }
    }

    /// A method or attribute; undefined if there is none.
    pub(in super::super) fn attribute_only(&mut self, value: &Value<'t>, name: &str) -> Result<Value<'t>, Error> {
        match value {
            Value::Undefined => return Err(wrong(format!("an undefined value has no attribute {name:?}"))),
            Value::Namespace(index) => {
                self.meter.spend(name.len())?;
                let found = self.namespaces[*index].get(name);
                return Ok(found.cloned().unwrap_or(Value::Undefined));
            }
            Value::Loop(state) => {
                let (index, length) = (state.index.get(), state.items.items.len());
                let number = |number: usize| Ok(Value::Int(number as i128));
                let item = |index: Option<usize>| {
                    let item = index.and_then(|index| state.items.items.get(index));
                    Ok(item.cloned().unwrap_or(Value::Undefined))
                };
                match name {
                    "index" => return number(index + 1),
                    "index0" => return number(index),
                    "revindex" => return number(length - index),
                    "revindex0" => return number(length - index - 1),
                    "first" => return Ok(Value::Bool(index == 0)),
                    "last" => return Ok(Value::Bool(index + 1 == length)),
                    "length" => return number(length),
                    "depth" => return number(state.depth + 1),
                    "depth0" => return number(state.depth),
                    "previtem" => return item(index.checked_sub(1)),
                    "nextitem" => return item(Some(index + 1)),
                    _ => {}
                }
            }
            Value::Macro(value) if name == "name" => return Value::text(&self.meter, &value.definition.name),
            Value::Macro(_) => return Err(wrong(format!("the attribute {name:?} of a macro is not supported"))),
            _ => {}
        }
        match methods::find(value, name) {
            Some(method) => value.clone().method(method),
            None => Ok(Value::Undefined),
        }
    }

    /// `value[key]`: an item, or else a method or attribute.
    pub(in super::super) fn item(&mut self, value: &Value<'t>, key: &Value<'t>) -> Result<Value<'t>, Error> {
        let found = match value {
            Value::Undefined => return Err(wrong("an undefined value has no items")),
            Value::Dict(dict) => {
                charge_key(&self.meter, key)?;
                dict.get_value(key).cloned()
            }
            _ => match key.integer() {
                Some(index) => item_at(&self.meter, value, index)?,
                None => None,
            },
        };
        match (found, key) {
            (Some(found), _) => Ok(found),
            (None, Value::Text(name)) => self.attribute_only(value, name.as_str()),
            (None, _) => Ok(Value::Undefined),
        }
    }
}
