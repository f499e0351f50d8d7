//! Many short byte strings in one allocation.

/// Byte strings by index.
#[derive(Debug, Default)]
pub(super) struct Packed {
    bytes: Vec<u8>,
    /// `ends[i]` is where string i ends.
    ends: Vec<u32>,
}

impl Packed {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a string; fails if 4 GiB are full.
    pub(super) fn push(&mut self, bytes: impl IntoIterator<Item = u8>) -> Option<()> {
        self.bytes.extend(bytes);
        self.ends.push(self.bytes.len().try_into().ok()?);
        Some(())
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[start as usize..end as usize])
    }
}
