//! JSON files of a model folder: bounded in size, in what becomes of them in memory, and with no name
//! twice in an object.

use super::header::damaged;
use crate::load::LoadError;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};
use std::{collections::HashSet, fmt, fs::File, io::Read as _, marker::PhantomData, path::Path};

/// Most bytes of text that become a tree of values: two bytes of it can take two hundred there.
pub(super) const TREE: usize = 512 << 10;

/// A value of any shape.
#[derive(Default)]
pub(super) struct Tree(pub(super) Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        if text.len() > TREE {
            let found = text.len();
            return Err(D::Error::custom(format!(
                "a value of {found} bytes, at most {TREE} expected"
            )));
        }
        serde_json::from_str(text).map(Self).map_err(D::Error::custom)
    }
}

/// The entries of an object in order, at most `MOST`. A name twice is an error: readers disagree on
/// what counts.
pub(super) struct Pairs<T, const MOST: usize>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Pairs<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for PairsVisitor<T, MOST> {
    type Value = Pairs<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry::<String, T>()? {
            if pairs.len() == MOST {
                return Err(A::Error::custom(format!("more than {MOST} names in an object")));
            }
            pairs.push(pair);
        }
        let mut names = HashSet::with_capacity(pairs.len());
        match pairs.iter().find(|(name, _)| !names.insert(name.as_str())) {
            Some((name, _)) => Err(A::Error::custom(format!("the name {name:?} stands twice"))),
            None => Ok(Pairs(pairs)),
        }
    }
}

pub(super) fn parse<T: DeserializeOwned>(text: &[u8], path: &str) -> Result<T, LoadError> {
    serde_json::from_slice(text).map_err(|error| damaged(path, error.to_string()))
}

/// Reads a file of at most `limit` bytes; `None` if there is none.
pub(super) fn read<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
    limit: u64,
) -> Result<Option<T>, LoadError> {
    match open(folder, name)? {
        None => Ok(None),
        Some(file) => {
            let mut text = Vec::new();
            let read = file.take(limit + 1).read_to_end(&mut text);
            read.map_err(|source| LoadError::Open { path: folder.join(name), source })?;
            if text.len() as u64 > limit {
                return Err(damaged(name, format!("more than {limit} bytes")));
            }
            // Read as a structure, a list would pass for the fields in their order.
            if text.trim_ascii_start().first().is_some_and(|&first| first != b'{') {
                return Err(damaged(name, "an object is expected".to_owned()));
            }
            parse(&text, name).map(Some)
        }
    }
}

/// Opens a file of the folder: its name is one component, and it is a regular file that lies in the
/// folder even if links are followed.
pub(super) fn open(folder: &Path, name: &str) -> Result<Option<File>, LoadError> {
    let plain = !name.is_empty()
        && name.len() <= 255
        && name != "."
        && name != ".."
        && !name.contains(['/', '\\', '\0', ':']);
    if !plain {
        return Err(damaged(name, "a file name of one component is expected".to_owned()));
    }
    let path = folder.join(name);
    let failed = |source| LoadError::Open { path: path.clone(), source };
    let inside = match path.canonicalize() {
        Ok(inside) => inside,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !is_home(&folder.canonicalize().map_err(failed)?, inside.parent()) {
        return Err(damaged(name, "it leads out of the model's folder".to_owned()));
    }
    if !inside.is_file() {
        return Err(LoadError::NotAFile { path });
    }
    File::open(inside).map(Some).map_err(failed)
}

/// Whether a file of the folder may really lie in `parent`: the folder itself, or the blobs that the
/// snapshots of a hub's cache link to.
fn is_home(folder: &Path, parent: Option<&Path>) -> bool {
    let snapshots = folder.parent().filter(|parent| parent.ends_with("snapshots"));
    let blobs = snapshots.and_then(Path::parent).map(|repository| repository.join("blobs"));
    parent == Some(folder) || (blobs.is_some() && parent == blobs.as_deref())
}
