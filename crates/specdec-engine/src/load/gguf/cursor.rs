//! Sequential reading with every length checked against the file first.

use super::{field::Field, source::ReadAt};
use crate::load::LoadError;

/// Bytes fetched at once; a 6 MB header takes some 25 reads.
const CHUNK: u64 = 256 << 10;

/// A position in a source, with the bytes around it.
pub(super) struct Cursor<'a, S: ?Sized> {
    source: &'a S,
    size: u64,
    buffer: Vec<u8>,
    /// File offset of `buffer[0]`.
    start: u64,
    /// Next unread byte in `buffer`.
    next: usize,
}

impl<'a, S: ReadAt + ?Sized> Cursor<'a, S> {
    pub(super) fn new(source: &'a S) -> Result<Self, LoadError> {
        let size = source.size().map_err(|source| LoadError::Read {
            offset: 0,
            field: Field::Magic.to_string(),
            source,
        })?;
        Ok(Self { source, size, buffer: Vec::new(), start: 0, next: 0 })
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn offset(&self) -> u64 {
        self.start + self.next as u64
    }

    /// Fails unless `needed` more bytes are in the file.
    pub(super) fn expect(&self, needed: u64, field: Field<'_>) -> Result<(), LoadError> {
        if needed <= self.size - self.offset() {
            return Ok(());
        }
        Err(LoadError::Truncated {
            offset: self.offset(),
            field: field.to_string(),
            needed,
            size: self.size,
        })
    }

    /// The next `length` bytes.
    pub(super) fn take(&mut self, length: u64, field: Field<'_>) -> Result<&[u8], LoadError> {
        self.expect(length, field)?;
        let length = length as usize;
        if self.buffer.len() - self.next < length {
            self.refill(length as u64, field)?;
        }
        let bytes = &self.buffer[self.next..self.next + length];
        self.next += length;
        Ok(bytes)
    }

    /// Makes the buffer begin at the position and hold at least `length` bytes.
    fn refill(&mut self, length: u64, field: Field<'_>) -> Result<(), LoadError> {
        let offset = self.offset();
        let fetch = length.max(CHUNK).min(self.size - offset);
        self.buffer.resize(fetch as usize, 0);
        self.source.read_exact_at(&mut self.buffer, offset).map_err(|source| LoadError::Read {
            offset,
            field: field.to_string(),
            source,
        })?;
        self.start = offset;
        self.next = 0;
        Ok(())
    }

    pub(super) fn array<const N: usize>(&mut self, field: Field<'_>) -> Result<[u8; N], LoadError> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N as u64, field)?);
        Ok(bytes)
    }

    pub(super) fn u32(&mut self, field: Field<'_>) -> Result<u32, LoadError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    pub(super) fn u64(&mut self, field: Field<'_>) -> Result<u64, LoadError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A number of things that take at least `least` bytes each.
    pub(super) fn count(
        &mut self,
        least: u64,
        limit: Limit,
        field: Field<'_>,
    ) -> Result<u64, LoadError> {
        let offset = self.offset();
        let found = self.u64(field)?;
        limit.check(found, offset, field)?;
        self.expect(found.saturating_mul(least), field)?;
        Ok(found)
    }

    /// A string: its length, then its bytes.
    pub(super) fn string(&mut self, limit: Limit, field: Field<'_>) -> Result<&[u8], LoadError> {
        let length = self.count(1, limit, field)?;
        self.take(length, field)
    }

    /// A string that must be UTF-8.
    pub(super) fn text(&mut self, limit: Limit, field: Field<'_>) -> Result<String, LoadError> {
        let offset = self.offset();
        let bytes = self.string(limit, field)?.to_vec();
        String::from_utf8(bytes).map_err(|_| LoadError::Utf8 { offset, field: field.to_string() })
    }
}

/// An inclusive range that a count or length must lie in, with its wording.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) words: &'static str,
}

impl Limit {
    pub(super) fn check(self, found: u64, offset: u64, field: Field<'_>) -> Result<(), LoadError> {
        if (self.low..=self.high).contains(&found) {
            return Ok(());
        }
        Err(LoadError::OutOfRange { offset, field: field.to_string(), found, expected: self.words })
    }
}
