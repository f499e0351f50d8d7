//! Expressions.

use super::{
    args::Args,
    run::{Run, Stop},
    text::Text,
    value::{Loop, Value},
};
use minijinja::machinery::ast::{self, BinOpKind, CallArg, CompareOpKind, Expr, UnaryOpKind};

impl<'t> Run<'t> {
    pub(super) fn eval(&mut self, expr: &'t Expr<'t>) -> Result<Value<'t>, Stop> {
        self.nested(expr.span().start_line, |run| run.run_expr(expr))
    }

    fn run_expr(&mut self, expr: &'t Expr<'t>) -> Result<Value<'t>, Stop> {
        match expr {
            Expr::Var(var) => self.lookup(var.id),
            Expr::Const(constant) => Value::constant(&constant.value),
            Expr::Slice(slice) => self.slice(slice),
            Expr::UnaryOp(unary) => {
                let value = self.eval(&unary.expr)?;
                match unary.op {
                    UnaryOpKind::Not => Ok(Value::Bool(!value.is_true())),
                    UnaryOpKind::Neg => negative(&value),
                }
            }
            Expr::BinOp(binary) => self.binary(binary),
            Expr::Compare(compare) => self.compare(compare),
            Expr::IfExpr(choice) => {
                if self.eval(&choice.test_expr)?.is_true() {
                    self.eval(&choice.true_expr)
                } else {
                    choice.false_expr.as_ref().map_or(Ok(Value::Undefined), |expr| self.eval(expr))
                }
            }
            Expr::Filter(filter) => {
                let Some(inner) = &filter.expr else {
                    return Err(Stop::failed("a filter without a value"));
                };
                let value = self.eval(inner)?;
                let args = self.args(&filter.args)?;
                self.filter(filter.name, value, args)
            }
            Expr::Test(test) => {
                let value = self.eval(&test.expr)?;
                let args = self.args(&test.args)?;
                Ok(Value::Bool(self.test(test.name, &value, args)?))
            }
            Expr::GetAttr(attr) => {
                let value = self.eval(&attr.expr)?;
                self.attribute(&value, attr.name)
            }
            Expr::GetItem(item) => {
                let value = self.eval(&item.expr)?;
                let key = self.eval(&item.subscript_expr)?;
                self.item(&value, &key)
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => {
                let items = self.all(&list.items)?;
                Value::list(items)
            }
            Expr::Tuple(tuple) => {
                let items = self.all(&tuple.items)?;
                Value::sequence(items, true)
            }
            Expr::Map(map) => {
                let (keys, values) = (self.all(&map.keys)?, self.all(&map.values)?);
                Value::map(keys.into_iter().zip(values))
            }
        }
    }

    fn all(&mut self, exprs: &'t [Expr<'t>]) -> Result<Vec<Value<'t>>, Stop> {
        self.pay_items(exprs.len())?;
        exprs.iter().map(|expr| self.eval(expr)).collect()
    }

    fn args(&mut self, written: &'t [CallArg<'t>]) -> Result<Args<'t>, Stop> {
        let mut args = Args::default();
        for arg in written {
            match arg {
                CallArg::Pos(expr) => args.push(self.eval(expr)?),
                CallArg::Kwarg(name, expr) => {
                    let value = self.eval(expr)?;
                    args.push_named((*name).to_owned(), value);
                }
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => {
                    return Err(Stop::failed("arguments cannot be unpacked"));
                }
            }
        }
        Ok(args)
    }

    pub(super) fn call(&mut self, call: &'t ast::Call<'t>) -> Result<Value<'t>, Stop> {
        if let Expr::GetAttr(attr) = &call.expr {
            let value = self.eval(&attr.expr)?;
            let args = self.args(&call.args)?;
            return match &value {
                Value::Space(_) => {
                    let callee = self.attribute(&value, attr.name)?;
                    self.call_value(&callee, args)
                }
                _ => self.method(&value, attr.name, args),
            };
        }
        let callee = self.eval(&call.expr)?;
        let args = self.args(&call.args)?;
        self.call_value(&callee, args)
    }

    fn call_value(&mut self, callee: &Value<'t>, args: Args<'t>) -> Result<Value<'t>, Stop> {
        match callee {
            Value::Macro(made) => self.call_macro(made, args),
            Value::Builtin(builtin) => self.builtin(*builtin, args),
            other => Err(Stop::failed(format!("{} cannot be called", other.kind()))),
        }
    }

    /// A filter with its arguments, as blocks name it, on `value`.
    pub(super) fn filtered(
        &mut self,
        filter: Option<&'t Expr<'t>>,
        value: Value<'t>,
    ) -> Result<Value<'t>, Stop> {
        match filter {
            None => Ok(value),
            Some(Expr::Filter(filter)) => {
                let value = self.filtered(filter.expr.as_ref(), value)?;
                let args = self.args(&filter.args)?;
                self.filter(filter.name, value, args)
            }
            Some(_) => Err(Stop::failed("not a filter")),
        }
    }

    pub(super) fn attribute(&mut self, value: &Value<'t>, name: &str) -> Result<Value<'t>, Stop> {
        Ok(match value {
            Value::Undefined => {
                return Err(Stop::failed(format!("undefined has no attribute {name:?}")));
            }
            Value::Map(map) => map.get(&Value::own(name)).cloned().unwrap_or(Value::Undefined),
            Value::Space(space) => {
                let field = self.spaces[*space].iter().find(|(known, _)| known == name);
                field.map_or(Value::Undefined, |(_, value)| value.clone())
            }
            Value::Loop(state) => of_loop(state, name),
            _ => Value::Undefined,
        })
    }

    pub(super) fn item(&mut self, value: &Value<'t>, key: &Value<'t>) -> Result<Value<'t>, Stop> {
        self.pay(key.size())?;
        let at = |len: usize| {
            let index = key.as_int()?;
            let index = if index < 0 { index.checked_add(len as i64)? } else { index };
            usize::try_from(index).ok().filter(|&index| index < len)
        };
        Ok(match (value, key) {
            (Value::List(list), _) => match at(list.items.len()) {
                Some(index) => list.items[index].clone(),
                None => Value::Undefined,
            },
            (Value::Text(text), Value::Int(_)) => match at(text.len()) {
                Some(index) => Value::Text(text.slice(index..index + 1)),
                None => Value::Undefined,
            },
            (Value::Map(map), _) => map.get(key).cloned().unwrap_or(Value::Undefined),
            (_, Value::Text(name)) => self.attribute(value, &name.to_string())?,
            (Value::Undefined, _) => return Err(Stop::failed("undefined has no items")),
            _ => Value::Undefined,
        })
    }

    fn slice(&mut self, slice: &'t ast::Slice<'t>) -> Result<Value<'t>, Stop> {
        let value = self.eval(&slice.expr)?;
        let mut bound = |expr: &'t Option<Expr<'t>>| match expr {
            None => Ok(None),
            Some(expr) => match self.eval(expr)? {
                Value::None => Ok(None),
                Value::Int(at) => Ok(Some(at)),
                other => Err(Stop::failed(format!("{} is no bound of a slice", other.kind()))),
            },
        };
        let (start, stop, step) = (bound(&slice.start)?, bound(&slice.stop)?, bound(&slice.step)?);
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(Stop::failed("a slice with step 0"));
        }
        match value {
            Value::Text(text) => {
                let places = places(text.len(), start, stop, step);
                self.pay_chars(places.len())?;
                let raw: Vec<u32> = places.iter().map(|&at| text.raw()[at]).collect();
                Ok(Value::Text(Text::from(raw)))
            }
            Value::List(list) => {
                let places = places(list.items.len(), start, stop, step);
                self.pay_items(places.len())?;
                let items = places.iter().map(|&at| list.items[at].clone()).collect();
                Value::sequence(items, list.is_tuple)
            }
            other => Err(Stop::failed(format!("{} cannot be sliced", other.kind()))),
        }
    }

    fn compare(&mut self, compare: &'t ast::Compare<'t>) -> Result<Value<'t>, Stop> {
        let mut left = self.eval(&compare.expr)?;
        for op in &compare.ops {
            let right = self.eval(&op.expr)?;
            let holds = match op.op {
                CompareOpKind::Eq => self.equal(&left, &right)?,
                CompareOpKind::Ne => !self.equal(&left, &right)?,
                CompareOpKind::In => self.contains(&right, &left)?,
                CompareOpKind::NotIn => !self.contains(&right, &left)?,
                CompareOpKind::Lt => self.order(&left, &right)?.is_lt(),
                CompareOpKind::Lte => self.order(&left, &right)?.is_le(),
                CompareOpKind::Gt => self.order(&left, &right)?.is_gt(),
                CompareOpKind::Gte => self.order(&left, &right)?.is_ge(),
            };
            if !holds {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }

    fn binary(&mut self, binary: &'t ast::BinOp<'t>) -> Result<Value<'t>, Stop> {
        let left = self.eval(&binary.left)?;
        match binary.op {
            BinOpKind::ScAnd if !left.is_true() => return Ok(left),
            BinOpKind::ScOr if left.is_true() => return Ok(left),
            _ => {}
        }
        let right = self.eval(&binary.right)?;
        self.pay(left.size().min(right.size()))?;
        Ok(match binary.op {
            BinOpKind::ScAnd | BinOpKind::ScOr => right,
            BinOpKind::Eq => Value::Bool(self.equal(&left, &right)?),
            BinOpKind::Ne => Value::Bool(!self.equal(&left, &right)?),
            BinOpKind::Lt => Value::Bool(self.order(&left, &right)?.is_lt()),
            BinOpKind::Lte => Value::Bool(self.order(&left, &right)?.is_le()),
            BinOpKind::Gt => Value::Bool(self.order(&left, &right)?.is_gt()),
            BinOpKind::Gte => Value::Bool(self.order(&left, &right)?.is_ge()),
            BinOpKind::In => Value::Bool(self.contains(&right, &left)?),
            BinOpKind::Concat => {
                let parts = [self.printed(&left)?, self.printed(&right)?];
                Value::Text(self.concat(&parts)?)
            }
            BinOpKind::Add => self.add(&left, &right)?,
            BinOpKind::Mul => self.multiply(&left, &right)?,
            op => super::number::arithmetic(op, &left, &right)?,
        })
    }

    fn add(&mut self, left: &Value<'t>, right: &Value<'t>) -> Result<Value<'t>, Stop> {
        match (left, right) {
            (Value::Text(a), Value::Text(b)) => {
                Ok(Value::Text(self.concat(&[a.clone(), b.clone()])?))
            }
            (Value::List(a), Value::List(b)) => {
                self.pay_items(a.items.len() + b.items.len())?;
                let items = a.items.iter().chain(&b.items).cloned().collect();
                Value::sequence(items, a.is_tuple)
            }
            _ => super::number::arithmetic(BinOpKind::Add, left, right),
        }
    }

    fn multiply(&mut self, left: &Value<'t>, right: &Value<'t>) -> Result<Value<'t>, Stop> {
        let (thing, count) = match (left, right) {
            (Value::Text(_) | Value::List(_), Value::Int(count)) => (left, count),
            (Value::Int(count), Value::Text(_) | Value::List(_)) => (right, count),
            _ => return super::number::arithmetic(BinOpKind::Mul, left, right),
        };
        let count = usize::try_from(*count).unwrap_or(0);
        match thing {
            Value::Text(text) => {
                self.pay_chars(text.len().saturating_mul(count))?;
                Ok(Value::Text(Text::from(text.raw().repeat(count))))
            }
            Value::List(list) => {
                self.pay_items(list.items.len().saturating_mul(count))?;
                let items = (0..count).flat_map(|_| list.items.iter().cloned()).collect();
                Value::sequence(items, list.is_tuple)
            }
            _ => Ok(Value::Undefined),
        }
    }

    pub(super) fn concat(&mut self, parts: &[Text]) -> Result<Text, Stop> {
        let len = parts.iter().map(Text::len).sum();
        self.pay_chars(len)?;
        let mut raw = Vec::with_capacity(len);
        for part in parts {
            raw.extend_from_slice(part.raw());
        }
        Ok(Text::from(raw))
    }

    pub(super) fn equal(&mut self, left: &Value<'t>, right: &Value<'t>) -> Result<bool, Stop> {
        self.pay(left.size().min(right.size()))?;
        Ok(left == right)
    }

    pub(super) fn order(
        &mut self,
        left: &Value<'t>,
        right: &Value<'t>,
    ) -> Result<std::cmp::Ordering, Stop> {
        self.pay(left.size().min(right.size()))?;
        left.partial_cmp(right).ok_or_else(|| {
            Stop::failed(format!("{} and {} have no order", left.kind(), right.kind()))
        })
    }

    pub(super) fn contains(&mut self, whole: &Value<'t>, part: &Value<'t>) -> Result<bool, Stop> {
        self.pay(whole.size().saturating_add(part.size()))?;
        Ok(match (whole, part) {
            (Value::Text(text), Value::Text(part)) => {
                text.to_string().contains(part.to_string().as_str())
            }
            (Value::List(list), _) => list.items.contains(part),
            (Value::Map(map), _) => map.get(part).is_some(),
            (Value::Undefined, _) => false,
            (Value::Space(space), Value::Text(name)) => {
                self.spaces[*space].iter().any(|(known, _)| *name == **known)
            }
            _ => return Err(Stop::failed(format!("{} contains nothing", whole.kind()))),
        })
    }

    /// The items of what can be walked, paid for.
    pub(super) fn items(&mut self, value: &Value<'t>) -> Result<Vec<Value<'t>>, Stop> {
        let count = match value {
            Value::List(list) => list.items.len(),
            Value::Map(map) => map.entries.len(),
            Value::Text(text) => text.len(),
            _ => 0,
        };
        self.pay_items(count)?;
        Ok(match value {
            Value::List(list) => list.items.clone(),
            Value::Map(map) => map.entries.iter().map(|(key, _)| key.clone()).collect(),
            Value::Text(text) => (0..count).map(|at| Value::Text(text.slice(at..at + 1))).collect(),
            Value::Undefined => Vec::new(),
            other => return Err(Stop::failed(format!("{} has no items", other.kind()))),
        })
    }
}

fn negative<'t>(value: &Value<'t>) -> Result<Value<'t>, Stop> {
    let number = match value {
        Value::Float(number) => return Ok(Value::Float(-number)),
        _ => value.as_int().and_then(i64::checked_neg),
    };
    number.map(Value::Int).ok_or_else(|| Stop::failed(format!("{} has no negative", value.kind())))
}

/// The places that Python's slice takes.
fn places(len: usize, start: Option<i64>, stop: Option<i64>, step: i64) -> Vec<usize> {
    let len = len as i64;
    let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let clamp = |at: i64| if at < 0 { at.saturating_add(len) } else { at }.clamp(low, high);
    let mut at = start.map_or(if step > 0 { low } else { high }, clamp);
    let end = stop.map_or(if step > 0 { high } else { low }, clamp);
    let mut places = Vec::new();
    while if step > 0 { at < end } else { at > end } {
        places.push(at as usize);
        at = at.saturating_add(step);
    }
    places
}

fn of_loop<'t>(state: &Loop<'t>, name: &str) -> Value<'t> {
    let (index, len) = (state.index, state.items.items.len());
    let number = |n: usize| Value::Int(n as i64);
    let neighbour = |at: Option<usize>| {
        at.and_then(|at| state.items.items.get(at)).cloned().unwrap_or(Value::Undefined)
    };
    match name {
        "index" => number(index + 1),
        "index0" => number(index),
        "revindex" => number(len - index),
        "revindex0" => number(len - index - 1),
        "first" => Value::Bool(index == 0),
        "last" => Value::Bool(index + 1 == len),
        "length" => number(len),
        "depth" => number(state.depth),
        "depth0" => number(state.depth - 1),
        "previtem" => neighbour(index.checked_sub(1)),
        "nextitem" => neighbour(Some(index + 1)),
        _ => Value::Undefined,
    }
}
