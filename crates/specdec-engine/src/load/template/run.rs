//! Rendering: statements, names, and the budget of work.
//!
//! Work is paid for before it is done: [`NODE`] units a step, [`CHAR`] a character that is made,
//! [`ITEM`] an item. So memory and time are bounded together, whatever the template says. Nesting is
//! bounded by [`MAX_NESTING`], with the stack for it.

use super::{
    error::TemplateError,
    text::Text,
    value::{Loop, Value},
};
use minijinja::machinery::ast::{self, Expr, Stmt};
use std::rc::Rc;

/// Cost of a step of the interpreter.
const NODE: u64 = 64;
/// Cost of a character; it takes 4 bytes.
const CHAR: u64 = 4;
/// Cost of an item of a list or a mapping.
pub(super) const ITEM: u64 = 64;

/// Work of one rendering: at most a million steps or 64 MiB of data.
const WORK: u64 = 64 << 20;
/// More work for each byte of the messages: they are copied about ten times.
const WORK_PER_BYTE: u64 = 64;

/// Longest prompt in characters.
pub(super) const MAX_OUTPUT: usize = 16 << 20;

/// Deepest nesting of expressions, statements and macros together.
const MAX_NESTING: usize = 1000;

/// Why a rendering ended.
#[derive(Debug)]
pub(super) enum Stop {
    Failed(String),
    Refused(String),
    TooMuchWork,
    TooLong,
}

impl Stop {
    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    fn at(self, line: usize) -> TemplateError {
        match self {
            Self::Failed(message) => TemplateError::Failed { line, message },
            Self::Refused(message) => TemplateError::Refused { message },
            Self::TooMuchWork => TemplateError::TooMuchWork,
            Self::TooLong => TemplateError::TooLong { limit: MAX_OUTPUT },
        }
    }
}

/// The functions that templates may call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Builtin {
    Range,
    Namespace,
    Dict,
    RaiseException,
    StrftimeNow,
}

const BUILTINS: [(&str, Builtin); 5] = [
    ("range", Builtin::Range),
    ("namespace", Builtin::Namespace),
    ("dict", Builtin::Dict),
    ("raise_exception", Builtin::RaiseException),
    ("strftime_now", Builtin::StrftimeNow),
];

/// Where a statement leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

/// One rendering.
pub(super) struct Run<'t> {
    /// Scopes, innermost last; the first one is the template's own.
    frames: Vec<Vec<(&'t str, Value<'t>)>>,
    /// First scope that the running macro sees, beside the template's own.
    base: usize,
    pub(super) spaces: Vec<Vec<(String, Value<'t>)>>,
    out: Vec<u32>,
    work: u64,
    nesting: usize,
    line: usize,
}

impl<'t> Run<'t> {
    /// Renders `template` with these names; the messages have `bytes` bytes.
    pub(super) fn render(
        template: &'t Stmt<'t>,
        names: Vec<(&'t str, Value<'t>)>,
        bytes: usize,
    ) -> Result<Text, TemplateError> {
        let mut run = Run {
            frames: vec![names],
            base: 0,
            spaces: Vec::new(),
            out: Vec::new(),
            work: WORK.saturating_add(WORK_PER_BYTE.saturating_mul(bytes as u64)),
            nesting: 0,
            line: 0,
        };
        match run.statement(template) {
            Ok(_) => Ok(Text::from(run.out)),
            Err(stop) => Err(stop.at(run.line)),
        }
    }

    pub(super) fn pay(&mut self, units: u64) -> Result<(), Stop> {
        self.work = self.work.checked_sub(units).ok_or(Stop::TooMuchWork)?;
        Ok(())
    }

    pub(super) fn pay_chars(&mut self, chars: usize) -> Result<(), Stop> {
        self.pay(CHAR.saturating_mul(chars as u64))
    }

    pub(super) fn pay_items(&mut self, items: usize) -> Result<(), Stop> {
        self.pay(ITEM.saturating_mul(items as u64))
    }

    /// Runs `inner` one level deeper.
    pub(super) fn nested<T>(
        &mut self,
        line: u16,
        inner: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        self.pay(NODE)?;
        self.line = line.into();
        if self.nesting == MAX_NESTING {
            return Err(Stop::failed("nested more than 1000 deep"));
        }
        self.nesting += 1;
        let done = inner(self)?;
        self.nesting -= 1;
        Ok(done)
    }

    pub(super) fn lookup(&mut self, name: &str) -> Result<Value<'t>, Stop> {
        let visible = self.frames[self.base..].iter().rev().chain(self.frames.first());
        let mut seen = 0;
        let found = visible.flat_map(|frame| frame.iter().rev()).find(|(known, _)| {
            seen += 1;
            *known == name
        });
        let found = found.map(|(_, value)| value.clone());
        self.pay(seen + (self.frames.len() - self.base) as u64)?;
        let builtin = || BUILTINS.iter().find(|(known, _)| *known == name);
        Ok(found
            .or_else(|| builtin().map(|found| Value::Builtin(found.1)))
            .unwrap_or(Value::Undefined))
    }

    fn set(&mut self, name: &'t str, value: Value<'t>) -> Result<(), Stop> {
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        match frame.iter_mut().find(|(known, _)| *known == name) {
            Some(place) => place.1 = value,
            None => frame.push((name, value)),
        }
        let names = frame.len() as u64;
        self.pay(names)
    }

    fn block(&mut self, statements: &'t [Stmt<'t>]) -> Result<Flow, Stop> {
        for statement in statements {
            let flow = self.statement(statement)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    /// A block in a scope of its own.
    fn scoped(
        &mut self,
        names: Vec<(&'t str, Value<'t>)>,
        statements: &'t [Stmt<'t>],
    ) -> Result<Flow, Stop> {
        self.frames.push(names);
        let flow = self.block(statements)?;
        self.frames.pop();
        Ok(flow)
    }

    /// What a block prints.
    fn captured(&mut self, statements: &'t [Stmt<'t>]) -> Result<Text, Stop> {
        let outer = std::mem::take(&mut self.out);
        self.scoped(Vec::new(), statements)?;
        Ok(Text::from(std::mem::replace(&mut self.out, outer)))
    }

    pub(super) fn emit(&mut self, text: &Text) -> Result<(), Stop> {
        self.pay_chars(text.len())?;
        if self.out.len() + text.len() > MAX_OUTPUT {
            return Err(Stop::TooLong);
        }
        self.out.extend_from_slice(text.raw());
        Ok(())
    }

    fn statement(&mut self, statement: &'t Stmt<'t>) -> Result<Flow, Stop> {
        self.nested(line_of(statement), |run| run.run_statement(statement))
    }

    fn run_statement(&mut self, statement: &'t Stmt<'t>) -> Result<Flow, Stop> {
        match statement {
            Stmt::Template(template) => return self.block(&template.children),
            Stmt::EmitRaw(raw) => self.emit(&Text::own(raw.raw))?,
            Stmt::EmitExpr(emit) => {
                let value = self.eval(&emit.expr)?;
                let text = self.printed(&value)?;
                self.emit(&text)?;
            }
            Stmt::ForLoop(each) => self.for_loop(each)?,
            Stmt::IfCond(cond) => {
                let holds = self.eval(&cond.expr)?.is_true();
                return self.block(if holds { &cond.true_body } else { &cond.false_body });
            }
            Stmt::WithBlock(with) => {
                self.frames.push(Vec::new());
                for (target, expr) in &with.assignments {
                    let value = self.eval(expr)?;
                    self.assign(target, value)?;
                }
                let flow = self.block(&with.body)?;
                self.frames.pop();
                return Ok(flow);
            }
            Stmt::Set(set) => {
                let value = self.eval(&set.expr)?;
                self.assign(&set.target, value)?;
            }
            Stmt::SetBlock(set) => {
                let text = Value::Text(self.captured(&set.body)?);
                let value = self.filtered(set.filter.as_ref(), text)?;
                self.assign(&set.target, value)?;
            }
            Stmt::FilterBlock(block) => {
                let text = Value::Text(self.captured(&block.body)?);
                let value = self.filtered(Some(&block.filter), text)?;
                let text = self.printed(&value)?;
                self.emit(&text)?;
            }
            Stmt::Macro(made) => self.set(made.name, Value::Macro(made))?,
            Stmt::Continue(_) => return Ok(Flow::Continue),
            Stmt::Break(_) => return Ok(Flow::Break),
            Stmt::Do(call) => drop(self.call(&call.call)?),
            Stmt::AutoEscape(block) => return self.block(&block.body),
            Stmt::CallBlock(_) => return Err(Stop::failed("call blocks are not supported")),
        }
        Ok(Flow::Next)
    }

    fn for_loop(&mut self, each: &'t ast::ForLoop<'t>) -> Result<(), Stop> {
        if each.recursive {
            return Err(Stop::failed("recursive loops are not supported"));
        }
        let all = self.eval(&each.iter)?;
        let mut items = self.items(&all)?;
        if let Some(filter) = &each.filter_expr {
            items = self.kept(each, filter, items)?;
        }
        if items.is_empty() {
            self.scoped(Vec::new(), &each.else_body)?;
            return Ok(());
        }
        self.pay_items(items.len())?;
        let Value::List(items) = Value::list(items)? else { return Ok(()) };
        let above = match self.lookup("loop")? {
            Value::Loop(state) => state.depth,
            _ => 0,
        };
        for index in 0..items.items.len() {
            let state = Loop { items: Rc::clone(&items), index, depth: above + 1 };
            self.frames.push(vec![("loop", Value::Loop(Rc::new(state)))]);
            self.assign(&each.target, items.items[index].clone())?;
            let flow = self.block(&each.body)?;
            self.frames.pop();
            if flow == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    fn kept(
        &mut self,
        each: &'t ast::ForLoop<'t>,
        filter: &'t Expr<'t>,
        items: Vec<Value<'t>>,
    ) -> Result<Vec<Value<'t>>, Stop> {
        let mut kept = Vec::new();
        for item in items {
            self.frames.push(Vec::new());
            self.assign(&each.target, item.clone())?;
            if self.eval(filter)?.is_true() {
                kept.push(item);
            }
            self.frames.pop();
        }
        Ok(kept)
    }

    fn assign(&mut self, target: &'t Expr<'t>, value: Value<'t>) -> Result<(), Stop> {
        let targets = match target {
            Expr::Var(var) => return self.set(var.id, value),
            Expr::GetAttr(attr) => {
                let Value::Space(space) = self.eval(&attr.expr)? else {
                    return Err(Stop::failed("only attributes of a namespace can be set"));
                };
                return self.set_attribute(space, attr.name, value);
            }
            Expr::Tuple(tuple) => &tuple.items,
            Expr::List(list) => &list.items,
            _ => return Err(Stop::failed("cannot assign to this")),
        };
        let items = self.items(&value)?;
        if items.len() != targets.len() {
            let (found, expected) = (items.len(), targets.len());
            return Err(Stop::failed(format!("cannot unpack {found} items into {expected} names")));
        }
        targets.iter().zip(items).try_for_each(|(target, item)| self.assign(target, item))
    }

    fn set_attribute(&mut self, space: usize, name: &str, value: Value<'t>) -> Result<(), Stop> {
        let fields = &mut self.spaces[space];
        match fields.iter_mut().find(|(known, _)| known == name) {
            Some(field) => field.1 = value,
            None => fields.push((name.to_owned(), value)),
        }
        let fields = fields.len() as u64;
        self.pay(fields)
    }

    /// What a macro prints.
    pub(super) fn call_macro(
        &mut self,
        made: &'t ast::Macro<'t>,
        mut args: super::args::Args<'t>,
    ) -> Result<Value<'t>, Stop> {
        let without_default = made.args.len() - made.defaults.len();
        let base = std::mem::replace(&mut self.base, self.frames.len());
        self.frames.push(Vec::new());
        for (index, arg) in made.args.iter().enumerate() {
            let Expr::Var(var) = arg else { continue };
            let value = match args.take(var.id) {
                Some(value) => value,
                None => match index.checked_sub(without_default) {
                    Some(default) => self.eval(&made.defaults[default])?,
                    None => Value::Undefined,
                },
            };
            self.set(var.id, value)?;
        }
        args.end(made.name)?;
        let text = self.captured(&made.body)?;
        self.frames.pop();
        self.base = base;
        Ok(Value::Text(text))
    }
}

fn line_of(statement: &Stmt<'_>) -> u16 {
    match statement {
        Stmt::Template(s) => s.span(),
        Stmt::EmitExpr(s) => s.span(),
        Stmt::EmitRaw(s) => s.span(),
        Stmt::ForLoop(s) => s.span(),
        Stmt::IfCond(s) => s.span(),
        Stmt::WithBlock(s) => s.span(),
        Stmt::Set(s) => s.span(),
        Stmt::SetBlock(s) => s.span(),
        Stmt::AutoEscape(s) => s.span(),
        Stmt::FilterBlock(s) => s.span(),
        Stmt::Macro(s) => s.span(),
        Stmt::CallBlock(s) => s.span(),
        Stmt::Continue(s) => s.span(),
        Stmt::Break(s) => s.span(),
        Stmt::Do(s) => s.span(),
    }
    .start_line
}
