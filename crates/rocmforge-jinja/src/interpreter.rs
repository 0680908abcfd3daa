//! Interpreter: statements with their variables. Expressions are in `expression`, calls in `call`.

mod call;
mod expression;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::ast::{For, Statement, StatementKind, Step, Target};
use super::error::{Cause, Error, wrong};
use super::given::Given;
use super::meter::{Charge, Meter, STEP};
use super::text::write_str;
use super::value::{DictBuilder, Items, ListBuilder, Loop, MacroValue, TextBuilder, Value};

/// The deepest nesting of statements, expressions and calls while they run.
pub(crate) const MAX_CALLS: usize = 600;

/// Bytes charged for a variable.
const VARIABLE: usize = 160;

/// Variables of one block, and those around it.
#[derive(Debug)]
pub(super) struct Scope<'t> {
    variables: RefCell<HashMap<Rc<str>, Value<'t>>>,
    parent: Option<Rc<Scope<'t>>>,
    charge: RefCell<Charge>,
}

impl<'t> Scope<'t> {
    fn new(meter: &Rc<Meter>, parent: Option<&Rc<Scope<'t>>>) -> Result<Rc<Self>, Error> {
        Ok(Rc::new(Self {
            variables: RefCell::default(),
            parent: parent.cloned(),
            charge: RefCell::new(meter.hold(VARIABLE)?),
        }))
    }

    /// Sets a variable of this block.
    pub(super) fn set(&self, name: &str, value: Value<'t>) -> Result<(), Error> {
        if let Some(known) = self.variables.borrow_mut().get_mut(name) {
            *known = value;
            return Ok(());
        }
        self.charge.borrow_mut().add(VARIABLE + name.len())?;
        self.variables.borrow_mut().insert(name.into(), value);
        Ok(())
    }

    fn get(&self, meter: &Meter, name: &str) -> Result<Option<Value<'t>>, Error> {
        let mut scope = Some(self);
        while let Some(current) = scope {
            meter.spend(STEP + name.len())?;
            if let Some(value) = current.variables.borrow().get(name) {
                return Ok(Some(value.clone()));
            }
            scope = current.parent.as_deref();
        }
        Ok(None)
    }
}

/// How statements end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// The text of the time that `strftime_now` asks for.
pub(super) type Clock<'c> = &'c dyn Fn(&str) -> Result<String, String>;

/// One rendering.
pub(super) struct Interpreter<'t, 'c> {
    meter: Rc<Meter>,
    depth: usize,
    namespaces: Vec<HashMap<Rc<str>, Value<'t>>>,
    /// What the namespaces and their names take.
    namespaces_charge: Charge,
    clock: Clock<'c>,
}

impl<'t, 'c> Interpreter<'t, 'c> {
    /// A rendering that has not begun.
    pub(super) fn new(meter: &Rc<Meter>, clock: Clock<'c>) -> Result<Self, Error> {
        Ok(Self {
            meter: Rc::clone(meter),
            depth: 0,
            namespaces: Vec::new(),
            namespaces_charge: meter.hold(0)?,
            clock,
        })
    }

    /// The text of a template with these variables.
    pub(super) fn render(
        &mut self,
        statements: &'t [Statement],
        variables: Vec<(&str, Value<'t>)>,
    ) -> Result<String, Error> {
        let inputs = Scope::new(&self.meter, None)?;
        for (name, value) in variables {
            inputs.set(name, value)?;
        }
        let scope = Scope::new(&self.meter, Some(&inputs))?;
        let mut out = TextBuilder::new(&self.meter)?;
        self.statements(statements, &scope, &mut out)?;
        Ok(out.into_string())
    }

    /// The meter of this rendering.
    pub(super) fn meter(&self) -> &Rc<Meter> {
        &self.meter
    }

    /// Counts one level of nesting more, and a step.
    fn nested<T>(&mut self, run: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_CALLS {
            return Err(Error::new(Cause::Depth {
                what: "statements and calls are",
                limit: MAX_CALLS,
            }));
        }
        self.meter.spend(STEP)?;
        self.depth += 1;
        let result = run(self);
        self.depth -= 1;
        result
    }

    fn statements(
        &mut self,
        statements: &'t [Statement],
        scope: &Rc<Scope<'t>>,
        out: &mut TextBuilder,
    ) -> Result<Flow, Error> {
        self.nested(|this| {
            for statement in statements {
                this.meter.spend(STEP)?;
                let flow = this.statement(statement, scope, out);
                let flow = flow.map_err(|error| error.at(statement.line))?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            Ok(Flow::Next)
        })
    }

    fn statement(
        &mut self,
        statement: &'t Statement,
        scope: &Rc<Scope<'t>>,
        out: &mut TextBuilder,
    ) -> Result<Flow, Error> {
        match &statement.kind {
            StatementKind::Text(text) => out.push(text)?,
            StatementKind::Print(value) => {
                let value = self.expression(value, scope)?;
                write_str(&value, out)?;
            }
            StatementKind::If { branches, otherwise } => {
                for (test, body) in branches {
                    if self.expression(test, scope)?.is_true() {
                        return self.statements(body, scope, out);
                    }
                }
                return self.statements(otherwise, scope, out);
            }
            StatementKind::For(statement) => self.for_statement(statement, scope, out)?,
            StatementKind::Set { target, value } => {
                let value = self.expression(value, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::SetBlock { target, filters, body } => {
                let value = self.block(body, scope)?;
                let value = self.filters(filters, value, scope)?;
                self.assign(target, value, scope)?;
            }
            StatementKind::With { values, body } => {
                let inner = Scope::new(&self.meter, Some(scope))?;
                for (target, value) in values {
                    let value = self.expression(value, scope)?;
                    self.assign(target, value, &inner)?;
                }
                return self.statements(body, &inner, out);
            }
            StatementKind::Macro(definition) => {
                let value = MacroValue {
                    definition,
                    scope: Rc::downgrade(scope),
                };
                scope.set(&definition.name, Value::Macro(Rc::new(value)))?;
            }
            StatementKind::Call { caller, call } => {
                let caller = Value::Macro(Rc::new(MacroValue {
                    definition: caller,
                    scope: Rc::downgrade(scope),
                }));
                let value = self.call_with_caller(call, caller, scope)?;
                write_str(&value, out)?;
            }
            StatementKind::Filter { filters, body } => {
                let value = self.block(body, scope)?;
                let value = self.filters(filters, value, scope)?;
                write_str(&value, out)?;
            }
            StatementKind::Generation(body) => {
                let inner = Scope::new(&self.meter, Some(scope))?;
                self.statements(body, &inner, out)?;
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    /// The text of a body with variables of its own.
    fn block(&mut self, body: &'t [Statement], scope: &Rc<Scope<'t>>) -> Result<Value<'t>, Error> {
        let inner = Scope::new(&self.meter, Some(scope))?;
        let mut out = TextBuilder::new(&self.meter)?;
        self.statements(body, &inner, &mut out)?;
        Ok(out.finish())
    }

    fn filters(
        &mut self,
        filters: &'t [Step],
        mut value: Value<'t>,
        scope: &Rc<Scope<'t>>,
    ) -> Result<Value<'t>, Error> {
        for step in filters {
            value = self.step(step, value, scope)?;
        }
        Ok(value)
    }

    fn for_statement(&mut self, statement: &'t For, scope: &Rc<Scope<'t>>, out: &mut TextBuilder) -> Result<(), Error> {
        let value = self.expression(&statement.items, scope)?;
        self.loop_over(statement, &value, 0, scope, out)
    }

    /// Runs a loop over the items of a value; `depth` loops of the same statement are around it.
    fn loop_over(
        &mut self,
        statement: &'t For,
        value: &Value<'t>,
        depth: usize,
        scope: &Rc<Scope<'t>>,
        out: &mut TextBuilder,
    ) -> Result<(), Error> {
        let mut items = value.iterate(&self.meter)?;
        if let Some(condition) = &statement.condition {
            items = self.filtered(statement, condition, &items, scope)?;
        }
        let state = Rc::new(Loop {
            items: Rc::clone(&items),
            index: Cell::new(0),
            depth,
            statement: statement.recursive.then(|| (statement, Rc::downgrade(scope))),
        });
        for (index, item) in items.items.iter().enumerate() {
            state.index.set(index);
            let inner = Scope::new(&self.meter, Some(scope))?;
            inner.set("loop", Value::Loop(Rc::clone(&state)))?;
            self.assign(&statement.target, item.clone(), &inner)?;
            if self.statements(&statement.body, &inner, out)? == Flow::Break {
                break;
            }
        }
        if items.items.is_empty() {
            let inner = Scope::new(&self.meter, Some(scope))?;
            self.statements(&statement.otherwise, &inner, out)?;
        }
        Ok(())
    }

    /// The items for which the condition of a loop holds.
    fn filtered(
        &mut self,
        statement: &'t For,
        condition: &'t super::ast::Expr,
        items: &Items<'t>,
        scope: &Rc<Scope<'t>>,
    ) -> Result<Rc<Items<'t>>, Error> {
        let mut kept = ListBuilder::new(&self.meter)?;
        for item in &items.items {
            let inner = Scope::new(&self.meter, Some(scope))?;
            self.assign(&statement.target, item.clone(), &inner)?;
            if self.expression(condition, &inner)?.is_true() {
                kept.push(item.clone())?;
            }
        }
        kept.items()
    }

    fn assign(&mut self, target: &'t Target, value: Value<'t>, scope: &Rc<Scope<'t>>) -> Result<(), Error> {
        match target {
            Target::Name(name) => scope.set(name, value),
            Target::Attribute(name, attribute) => match self.name(name, scope)? {
                Value::Namespace(index) => self.set_in_namespace(index, attribute, value),
                other => Err(wrong(format!(
                    "{name} is no namespace but a value of type {}, so its attributes cannot be set",
                    other.type_name()
                ))),
            },
            Target::Tuple(targets) => {
                let items = value.iterate(&self.meter)?;
                if items.items.len() != targets.len() {
                    return Err(wrong(format!(
                        "{} values for {} names",
                        items.items.len(),
                        targets.len()
                    )));
                }
                for (target, item) in targets.iter().zip(&items.items) {
                    self.assign(target, item.clone(), scope)?;
                }
                Ok(())
            }
        }
    }

    fn set_in_namespace(&mut self, index: usize, name: &str, value: Value<'t>) -> Result<(), Error> {
        if name.starts_with('_') {
            return Err(wrong(format!("a namespace takes no attribute {name:?}")));
        }
        let namespace = &mut self.namespaces[index];
        if let Some(known) = namespace.get_mut(name) {
            *known = value;
            return Ok(());
        }
        self.namespaces_charge.add(VARIABLE + name.len())?;
        namespace.insert(name.into(), value);
        Ok(())
    }

    /// A dict of named values.
    pub(super) fn dict_of(&self, named: Vec<(Rc<str>, Value<'t>)>) -> Result<Value<'t>, Error> {
        let mut dict = DictBuilder::new(&self.meter)?;
        for (name, value) in named {
            dict.insert(Value::text(&self.meter, &name)?, value)?;
        }
        Ok(Value::Dict(dict.finish()?))
    }

    /// Applies a filter of this name.
    pub(super) fn filter(&mut self, name: &str, value: &Value<'t>, given: Given<'t>) -> Result<Value<'t>, Error> {
        self.nested(|this| super::filters::call(this, name, value, given))
    }
}
