//! Bytes of tokens to text as it is generated: a character may be spread over several tokens.

/// Turns a stream of bytes into text, holding back the up to three bytes of a character that is
/// not complete yet. What it gives in all equals `String::from_utf8_lossy` of all bytes.
#[derive(Clone, Debug, Default)]
pub struct TextDecoder {
    /// An incomplete character: at most three bytes between calls.
    held: Vec<u8>,
    text: String,
}

impl TextDecoder {
    /// A decoder at the start of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that `bytes` complete; invalid bytes become U+FFFD.
    pub fn push(&mut self, bytes: &[u8]) -> &str {
        self.text.clear();
        self.held.extend_from_slice(bytes);
        let mut rest = self.held.as_slice();
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    self.text.push_str(valid);
                    rest = &[];
                    break;
                }
                Err(error) => error,
            };
            let (valid, bad) = rest.split_at(error.valid_up_to());
            self.text.push_str(&String::from_utf8_lossy(valid));
            rest = bad;
            // Without a length the input ends inside a character: it may still be completed.
            let Some(length) = error.error_len() else { break };
            self.text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[length..];
        }
        let keep = rest.len();
        self.held.drain(..self.held.len() - keep);
        &self.text
    }

    /// What is left at the end of the text: U+FFFD for an incomplete character, or nothing.
    pub fn flush(&mut self) -> &str {
        let held = std::mem::take(&mut self.held);
        self.text.clear();
        self.text.push_str(&String::from_utf8_lossy(&held));
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text from `bytes` pushed in pieces that end where a bit of `cuts` is set.
    fn decoded(bytes: &[u8], cuts: u32) -> String {
        let mut decoder = TextDecoder::new();
        let (mut text, mut start) = (String::new(), 0);
        for end in 1..=bytes.len() {
            if end == bytes.len() || cuts >> (end - 1) & 1 == 1 {
                text += decoder.push(&bytes[start..end]);
                assert!(decoder.held.len() < 4);
                start = end;
            }
        }
        text + decoder.flush()
    }

    #[test]
    fn any_cut_gives_the_text_of_the_whole() {
        let texts: [&[u8]; 10] = [
            "aé漢🏳️‍🌈".as_bytes(),
            b"\xff\xfe",
            b"a\xf0\x9f\x98",
            b"\xf0\x9f\x98a\xe6",
            b"\xe6\xbc\xe6\xbc\xa2",
            b"\xc0\x80\xed\xa0\x80",
            b"\xf4\x90\x80\x80\xf1",
            b"\x80\x80\xc3",
            b"\xe0\x80\x80\xf0\x90",
            b"",
        ];
        for bytes in texts {
            let whole = String::from_utf8_lossy(bytes);
            for cuts in 0..1 << bytes.len().saturating_sub(1).min(12) {
                assert_eq!(decoded(bytes, cuts), whole, "{bytes:x?} cut at {cuts:b}");
            }
        }
    }

    #[test]
    fn an_incomplete_character_is_held_back() {
        let mut decoder = TextDecoder::new();
        assert_eq!(decoder.push(b"a\xf0\x9f"), "a");
        assert_eq!(decoder.push(b"\x98\x80b"), "😀b");
        assert_eq!(decoder.push(b"\xe6\xbc"), "");
        assert_eq!(decoder.flush(), "\u{fffd}");
        assert_eq!(decoder.flush(), "");
    }
}
