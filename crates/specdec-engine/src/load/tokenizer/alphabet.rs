//! The byte alphabet of GPT-2: one printable character per byte.
//!
//! Bytes that are printable in Latin-1 stand for themselves; the other 68, in order, for the
//! characters from U+0100 on. So every byte string can be written as text without blanks.

/// Whether a byte stands for itself.
const fn stands_for_itself(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

const fn table() -> [char; 256] {
    let mut chars = ['\0'; 256];
    let (mut byte, mut next) = (0, 0x100);
    while byte < 256 {
        let code = if stands_for_itself(byte as u8) { byte as u32 } else { next };
        if code >= 0x100 {
            next += 1;
        }
        chars[byte] = match char::from_u32(code) {
            Some(char) => char,
            None => unreachable!(),
        };
        byte += 1;
    }
    chars
}

/// The character of each byte.
pub(super) const CHARS: [char; 256] = table();

/// The byte of each character code below 0x144; above 0xff where there is none.
const BYTES: [u16; 0x144] = {
    let mut bytes = [u16::MAX; 0x144];
    let mut byte = 0;
    while byte < 256 {
        bytes[CHARS[byte] as usize] = byte as u16;
        byte += 1;
    }
    bytes
};

/// The byte of a character, if it is one of the alphabet.
pub(super) fn byte(char: char) -> Option<u8> {
    BYTES.get(char as usize).and_then(|&byte| byte.try_into().ok())
}

/// The bytes that a text in the alphabet stands for, or `None` if it is not in the alphabet.
pub(super) fn bytes(text: &str) -> Option<impl Iterator<Item = u8>> {
    text.chars().all(|char| byte(char).is_some()).then(|| text.chars().filter_map(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_its_own_character_and_finds_back() {
        for value in 0..=255u8 {
            assert_eq!(byte(CHARS[usize::from(value)]), Some(value));
        }
        assert_eq!((CHARS[b' ' as usize], CHARS[b'\n' as usize]), ('Ġ', 'Ċ'));
        assert_eq!((CHARS[0x7f], CHARS[0xad], CHARS[b'a' as usize]), ('ġ', 'Ń', 'a'));
    }

    #[test]
    fn other_characters_have_no_byte() {
        assert_eq!(" \u{7f}\u{ad}\u{144}▁".chars().filter_map(byte).count(), 0);
        assert!(bytes("Ġ▁").is_none());
    }
}
