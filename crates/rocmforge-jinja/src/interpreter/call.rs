//! Calls: macros, methods, and the functions that every template has.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::ast::{Arguments, Expr, Step};
use super::super::error::{Cause, Error, wrong};
use super::super::given::{Given, integer};
use super::super::methods;
use super::super::operators::to_text;
use super::super::value::{DictBuilder, ListBuilder, Loop, MacroValue, Range, TextBuilder, Value};
use super::{Interpreter, Scope, VARIABLE};

/// The most numbers of a `range`, as in Jinja's sandbox.
const MAX_RANGE: usize = 100_000;

impl<'t> Interpreter<'t, '_> {
    /// The arguments of a call.
    pub(super) fn arguments(&mut self, arguments: &'t Arguments, scope: &Rc<Scope<'t>>) -> Result<Given<'t>, Error> {
        let mut given = Given::default();
        for value in &arguments.positional {
            given.positional.push(self.expression(value, scope)?);
        }
        if let Some(list) = &arguments.list {
            let items = self.expression(list, scope)?.iterate(&self.meter)?;
            let _charge = self.meter.hold(items.items.len() * size_of::<Value<'_>>())?;
            given.positional.extend(items.items.iter().cloned());
        }
        for (name, value) in &arguments.named {
            given.named.push((name.as_str().into(), self.expression(value, scope)?));
        }
        if let Some(dict) = &arguments.dict {
            let Value::Dict(dict) = self.expression(dict, scope)? else {
                return Err(wrong("`**` wants a dict"));
            };
            for (key, value) in &dict.entries {
                let Value::Text(key) = key.value() else {
                    return Err(wrong("`**` wants keys that are texts"));
                };
                self.meter.spend(key.as_str().len() * (1 + given.named.len()))?;
                if given.named.iter().any(|(known, _)| **known == *key.as_str()) {
                    return Err(wrong(format!("the argument {:?} is given twice", key.as_str())));
                }
                given.named.push((key.as_str().into(), value.clone()));
            }
        }
        Ok(given)
    }

    /// Calls a value.
    pub(super) fn call(&mut self, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
        self.nested(|this| match value {
            Value::Macro(definition) => this.call_macro(definition, given),
            Value::Method(method) => methods::call(this, &method.0, method.1, given),
            Value::Function(name) => this.call_function(name, given),
            Value::Loop(state) => this.call_loop(state, given),
            Value::Undefined => Err(wrong("an undefined value cannot be called")),
            other => Err(wrong(format!("a value of type {} cannot be called", other.type_name()))),
        })
    }

    /// The call of a `{% call %}`, with its body as `caller`.
    pub(super) fn call_with_caller(
        &mut self,
        call: &'t Expr,
        caller: Value<'t>,
        scope: &Rc<Scope<'t>>,
    ) -> Result<Value<'t>, Error> {
        let Expr::Postfix(base, steps) = call else {
            return Err(wrong("`call` needs a call"));
        };
        let Some((Step::Call(arguments), before)) = steps.split_last() else {
            return Err(wrong("`call` needs a call"));
        };
        let mut value = self.expression(base, scope)?;
        for step in before {
            value = self.step(step, value, scope)?;
        }
        let mut given = self.arguments(arguments, scope)?;
        given.named.push(("caller".into(), caller));
        self.call(&value, given)
    }

    fn call_macro(&mut self, value: &MacroValue<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
        let definition = value.definition;
        let name = &definition.name;
        let around = value.scope.upgrade();
        let around =
            around.ok_or_else(|| wrong(format!("the macro {name:?} is called after the block that defines it")))?;
        let scope = Scope::new(&self.meter, Some(&around))?;
        let parameters = &definition.parameters;
        let mut positional = given.positional.into_iter();
        let mut named = given.named;
        let mut take = |wanted: &str| {
            let at = named.iter().position(|(name, _)| **name == *wanted)?;
            Some(named.remove(at).1)
        };
        for (parameter, default) in parameters {
            let value = match (positional.next(), take(parameter)) {
                (Some(_), Some(_)) => return Err(wrong(format!("the macro {name:?} is given {parameter:?} twice"))),
                (given, again) => given.or(again),
            };
            let value = match (value, default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.expression(default, &scope)?,
                (None, None) => Value::Undefined,
            };
            scope.set(parameter, value)?;
        }
        match take("caller") {
            Some(caller) if definition.caller => scope.set("caller", caller)?,
            Some(_) => return Err(wrong(format!("the macro {name:?} does not call its caller"))),
            None if definition.caller => scope.set("caller", Value::Undefined)?,
            None => {}
        }
        if definition.varargs {
            let mut list = ListBuilder::new(&self.meter)?;
            for value in positional.by_ref() {
                list.push(value)?;
            }
            scope.set("varargs", list.tuple()?)?;
        }
        if positional.next().is_some() {
            return Err(wrong(format!(
                "the macro {name:?} takes {} arguments",
                parameters.len()
            )));
        }
        if definition.kwargs {
            let kwargs = self.dict_of(named)?;
            scope.set("kwargs", kwargs)?;
        } else if let Some((unknown, _)) = named.first() {
            return Err(wrong(format!("the macro {name:?} has no parameter {unknown:?}")));
        }
        let mut out = TextBuilder::new(&self.meter)?;
        self.statements(&definition.body, &scope, &mut out)?;
        Ok(out.finish())
    }

    /// `loop(items)` in a recursive loop.
    fn call_loop(&mut self, state: &Loop<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
        let items = given.one("loop", "items")?;
        let Some((statement, scope)) = &state.statement else {
            return Err(wrong("`loop` can be called in a recursive loop only"));
        };
        let scope = scope
            .upgrade()
            .ok_or_else(|| wrong("`loop` is called after its loop"))?;
        let mut out = TextBuilder::new(&self.meter)?;
        self.loop_over(statement, &items, state.depth + 1, &scope, &mut out)?;
        Ok(out.finish())
    }

    fn call_function(&mut self, name: &'static str, given: Given<'t>) -> Result<Value<'t>, Error> {
        match name {
            "raise_exception" => {
                let message = to_text(&self.meter, &given.one(name, "message")?)?;
                Err(Error::new(Cause::Refused(
                    message.as_str().unwrap_or_default().to_owned(),
                )))
            }
            "strftime_now" => {
                let format = given.one(name, "format")?;
                let format = super::super::given::text(name, &format)?;
                // No letter of a format becomes more than 64 bytes.
                let mut charge = self.meter.hold(64 * format.len())?;
                let text = (self.clock)(format).map_err(wrong)?;
                charge.shrink_to(0);
                Value::text(&self.meter, &text)
            }
            "range" => range(given),
            "namespace" => self.namespace(given),
            "dict" => {
                let dict = self.pairs(name, given)?;
                Ok(Value::Dict(dict.finish()?))
            }
            other => Err(wrong(format!(
                "the function {other:?} is not supported in chat templates"
            ))),
        }
    }

    /// The entries that `dict` and `namespace` are given: another dict or pairs, and named ones.
    fn pairs(&self, name: &str, mut given: Given<'t>) -> Result<DictBuilder<'t>, Error> {
        let mut dict = match given.positional.pop() {
            None => DictBuilder::new(&self.meter)?,
            Some(from) if given.positional.is_empty() => methods::copy_dict(&self.meter, &from)?,
            Some(_) => return Err(wrong(format!("{name} takes one dict"))),
        };
        for (key, value) in given.named {
            dict.insert(Value::text(&self.meter, &key)?, value)?;
        }
        Ok(dict)
    }

    fn namespace(&mut self, given: Given<'t>) -> Result<Value<'t>, Error> {
        let entries = self.pairs("namespace", given)?.finish()?;
        self.namespaces_charge.add(VARIABLE)?;
        let index = self.namespaces.len();
        self.namespaces.push(HashMap::new());
        for (key, value) in &entries.entries {
            let Some(key) = key.value().as_str() else {
                return Err(wrong("the names of a namespace are texts"));
            };
            self.set_in_namespace(index, key, value.clone())?;
        }
        Ok(Value::Namespace(index))
    }
}

fn range<'t>(given: Given<'t>) -> Result<Value<'t>, Error> {
    let [first, second, step] = given.bind("range", ["start", "stop", "step"])?;
    let bound = |value: Value<'t>| {
        let number = integer("range", &value)?;
        i64::try_from(number).map_err(|_| wrong("range beyond 64 bits"))
    };
    let first = bound(first.ok_or_else(|| wrong("range needs a number"))?)?;
    let (start, stop) = match second {
        Some(second) => (first, bound(second)?),
        None => (0, first),
    };
    let step = step.map_or(Ok(1), bound)?;
    if step == 0 {
        return Err(wrong("the step of range is 0"));
    }
    let range = Range { start, stop, step };
    if range.len() > MAX_RANGE {
        return Err(wrong(format!(
            "a range of {} numbers, more than {MAX_RANGE}",
            range.len()
        )));
    }
    Ok(Value::Range(range))
}
