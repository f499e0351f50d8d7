//! JSON files of a model folder: bounded in size, no name twice in an object.

use super::header::damaged;
use crate::load::LoadError;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor},
};
use std::{collections::HashSet, fmt, fs::File, io::Read as _, marker::PhantomData, path::Path};

/// The entries of an object in order. A name twice is an error: readers disagree on what counts.
pub(super) struct Pairs<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Pairs<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut pairs, mut names) = (Vec::new(), HashSet::new());
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format!("the name {name:?} stands twice")));
            }
            pairs.push((name, value));
        }
        Ok(Pairs(pairs))
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
