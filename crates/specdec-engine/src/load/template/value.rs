//! What a template computes with.
//!
//! Lists and mappings are immutable and know how deep they nest, so nothing that walks or drops one
//! recurses beyond [`MAX_DEPTH`]. Namespaces, the only values that change, live in a table of the
//! rendering and are named by number: they may contain themselves, and nothing follows the number.

use super::{
    run::{Builtin, ITEM, Stop},
    text::{Origin, Text},
};
use minijinja::machinery::ast;
use std::{
    cmp::Ordering,
    collections::{HashMap, hash_map::Entry},
    rc::Rc,
};

/// Deepest nesting of lists and mappings; messages nest up to 64 deep.
pub(super) const MAX_DEPTH: usize = 100;

#[derive(Clone)]
pub(super) enum Value<'t> {
    Undefined,
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Text),
    List(Rc<List<'t>>),
    Map(Rc<Map<'t>>),
    /// A namespace, by its place in the table.
    Space(usize),
    Macro(&'t ast::Macro<'t>),
    Builtin(Builtin),
    Loop(Rc<Loop<'t>>),
}

pub(super) struct List<'t> {
    pub(super) items: Vec<Value<'t>>,
    extent: Extent,
    pub(super) is_tuple: bool,
}

/// Entries in the order in which they were made.
pub(super) struct Map<'t> {
    pub(super) entries: Vec<(Value<'t>, Value<'t>)>,
    places: HashMap<String, usize>,
    extent: Extent,
}

/// How deep a value nests, and how much there is to walk in it: a list may hold another one many
/// times over, so its size is no matter of its memory.
#[derive(Clone, Copy, Default)]
struct Extent {
    depth: usize,
    size: u64,
}

/// What `loop` is in a body.
pub(super) struct Loop<'t> {
    pub(super) items: Rc<List<'t>>,
    pub(super) index: usize,
    pub(super) depth: usize,
}

impl Value<'_> {
    pub(super) fn own(text: &str) -> Self {
        Self::Text(Text::own(text))
    }

    pub(super) fn list(items: Vec<Self>) -> Result<Self, Stop> {
        Self::sequence(items, false)
    }

    pub(super) fn sequence(items: Vec<Self>, is_tuple: bool) -> Result<Self, Stop> {
        let extent = Extent::around(items.iter())?;
        Ok(Self::List(Rc::new(List { items, extent, is_tuple })))
    }

    /// Of entries with the same key the last one counts, in the place of the first.
    pub(super) fn map(pairs: impl IntoIterator<Item = (Self, Self)>) -> Result<Self, Stop> {
        let mut entries: Vec<(Self, Self)> = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        for (key, value) in pairs {
            let name = key.name().ok_or_else(|| {
                Stop::failed(format!("{} cannot be a key of a mapping", key.kind()))
            })?;
            match places.entry(name) {
                Entry::Occupied(place) => entries[*place.get()].1 = value,
                Entry::Vacant(place) => {
                    place.insert(entries.len());
                    entries.push((key, value));
                }
            }
        }
        let extent = Extent::around(entries.iter().flat_map(|(key, value)| [key, value]))?;
        Ok(Self::Map(Rc::new(Map { entries, places, extent })))
    }

    /// As what a key is looked up; numbers that are equal are one key.
    fn name(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(format!("\"{text}")),
            Self::None => Some("none".to_owned()),
            _ => match self.as_int() {
                Some(number) => Some(number.to_string()),
                None => self.as_float().map(|number| number.to_string()),
            },
        }
    }

    fn extent(&self) -> Extent {
        match self {
            Self::List(list) => list.extent,
            Self::Map(map) => map.extent,
            Self::Loop(state) => state.items.extent,
            Self::Text(text) => Extent { depth: 0, size: text.len() as u64 },
            _ => Extent::default(),
        }
    }

    /// What comparing, printing or copying all of it costs in units of work.
    pub(super) fn size(&self) -> u64 {
        self.extent().size
    }

    /// A value of a message or a tool: every text in it is foreign. The nesting has been checked.
    pub(super) fn foreign(json: &serde_json::Value) -> Result<Self, Stop> {
        use serde_json::Value as Json;
        Ok(match json {
            Json::Null => Self::None,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match number.as_i64() {
                Some(value) => Self::Int(value),
                None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Text::new(text, Origin::Message)),
            Json::Array(items) => {
                Self::list(items.iter().map(Self::foreign).collect::<Result<_, _>>()?)?
            }
            Json::Object(fields) => {
                let entry = |(name, value): (&String, _)| {
                    Ok((Self::Text(Text::new(name, Origin::Message)), Self::foreign(value)?))
                };
                Self::map(fields.iter().map(entry).collect::<Result<Vec<_>, Stop>>()?)?
            }
        })
    }

    /// A constant of the template.
    pub(super) fn constant(value: &minijinja::Value) -> Result<Self, Stop> {
        use minijinja::value::ValueKind;
        Ok(match value.kind() {
            ValueKind::None => Self::None,
            ValueKind::Bool => Self::Bool(value.is_true()),
            ValueKind::Number => match i64::try_from(value.clone()) {
                Ok(number) if value.is_integer() => Self::Int(number),
                _ => Self::Float(
                    f64::try_from(value.clone())
                        .map_err(|error| Stop::failed(error.to_string()))?,
                ),
            },
            ValueKind::String => Self::own(value.as_str().unwrap_or_default()),
            kind => return Err(Stop::failed(format!("a constant of kind {kind}"))),
        })
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::None => "none",
            Self::Bool(_) => "a boolean",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
            Self::Space(_) => "a namespace",
            Self::Macro(_) | Self::Builtin(_) => "a function",
            Self::Loop(_) => "a loop",
        }
    }

    pub(super) fn is_true(&self) -> bool {
        match self {
            Self::Undefined | Self::None => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(text) => text.len() > 0,
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            Self::Space(_) | Self::Macro(_) | Self::Builtin(_) | Self::Loop(_) => true,
        }
    }

    pub(super) fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            Self::Bool(value) => Some((*value).into()),
            _ => None,
        }
    }

    pub(super) fn as_float(&self) -> Option<f64> {
        match self {
            Self::Float(value) => Some(*value),
            _ => self.as_int().map(|value| value as f64),
        }
    }
}

impl Extent {
    /// Of what holds `values`.
    fn around<'a, 't: 'a>(values: impl Iterator<Item = &'a Value<'t>>) -> Result<Self, Stop> {
        let mut extent = Self::default();
        for inner in values.map(Value::extent) {
            extent.depth = extent.depth.max(inner.depth + 1);
            extent.size = extent.size.saturating_add(inner.size).saturating_add(ITEM);
        }
        if extent.depth > MAX_DEPTH {
            return Err(Stop::failed("a list or mapping nested more than 100 deep"));
        }
        Ok(extent)
    }
}

impl<'t> Map<'t> {
    pub(super) fn get(&self, key: &Value<'t>) -> Option<&Value<'t>> {
        let place = *self.places.get(&key.name()?)?;
        Some(&self.entries[place].1)
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Undefined, Self::Undefined) | (Self::None, Self::None) => true,
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::List(a), Self::List(b)) => a.is_tuple == b.is_tuple && a.items == b.items,
            (Self::Map(a), Self::Map(b)) => {
                let same = |(key, value): &(Self, Self)| b.get(key) == Some(value);
                a.entries.len() == b.entries.len() && a.entries.iter().all(same)
            }
            (Self::Space(a), Self::Space(b)) => a == b,
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => a == b,
                _ => self.as_float().is_some() && self.as_float() == other.as_float(),
            },
        }
    }
}

impl PartialOrd for Value<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.partial_cmp(b),
            (Self::List(a), Self::List(b)) => a.items.partial_cmp(&b.items),
            _ => match (self.as_int(), other.as_int()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => self.as_float()?.partial_cmp(&other.as_float()?),
            },
        }
    }
}
