//! The acceptor: what a request emits does not depend on how its tokens are grouped into steps, nor
//! its text on the pieces in which it arrives.

use proptest::prelude::*;
use specdec_core::{Acceptor, Finish, FinishReason, Limits, Stop, TokenId};

const EOS: TokenId = 99;

fn limits(stop: &[&str]) -> Limits {
    Limits {
        max_tokens: 100,
        context_left: 100,
        eos_token_ids: vec![EOS],
        stop: stop.iter().map(ToString::to_string).collect(),
        ..Limits::default()
    }
}

/// Feeds pieces as tokens 0, 1, 2, ... until the request ends; all that was streamed.
fn feed(acceptor: &mut Acceptor, pieces: &[&str]) -> Vec<String> {
    let mut streamed = Vec::new();
    for (token, piece) in pieces.iter().enumerate() {
        let end = acceptor.accept(token as TokenId, piece).is_some();
        streamed.push(acceptor.take_text());
        if end {
            break;
        }
    }
    streamed
}

fn text_stop(text: &str) -> Finish {
    Finish { reason: FinishReason::Stop, stop: Some(Stop::Text(text.into())) }
}

#[test]
fn a_stop_text_is_cut_and_never_streamed() {
    let mut acceptor = Acceptor::new(limits(&["END"]));
    let streamed = feed(&mut acceptor, &["one E", "N", "D two", "three"]);
    assert_eq!(streamed, ["one ", "", ""]);
    assert_eq!(acceptor.text(), "one ");
    assert_eq!(acceptor.token_ids(), [0, 1, 2]);
    assert_eq!(acceptor.finished().cloned(), Some(text_stop("END")));
}

#[test]
fn held_back_text_comes_when_it_turns_out_harmless() {
    let mut acceptor = Acceptor::new(limits(&["abcd", "xyz"]));
    assert_eq!(feed(&mut acceptor, &["ab", "c", "e", "xy"]), ["", "", "abce", ""]);
    acceptor.close(FinishReason::Abort);
    assert_eq!(acceptor.take_text(), "xy");
    assert_eq!(acceptor.text(), "abcexy");
}

#[test]
fn a_stop_text_that_begins_within_another_start_is_found() {
    // After "aab" the longest held beginning must shrink, not vanish.
    let mut acceptor = Acceptor::new(limits(&["aabaaa"]));
    assert_eq!(feed(&mut acceptor, &["aab", "aab", "aaa", "x"]), ["", "aab", ""]);
    assert_eq!(acceptor.text(), "aab");
}

#[test]
fn of_overlapping_stop_texts_the_one_that_ends_first_wins() {
    let mut acceptor = Acceptor::new(limits(&["bcd", "abcdef", "cd", "e"]));
    feed(&mut acceptor, &["xabcdef"]);
    assert_eq!(acceptor.text(), "xa");
    assert_eq!(acceptor.finished().cloned(), Some(text_stop("bcd")));
    let mut acceptor = Acceptor::new(limits(&["cd", "bcd"]));
    feed(&mut acceptor, &["xabcdef"]);
    assert_eq!(acceptor.finished().cloned(), Some(text_stop("bcd")));
}

#[test]
fn characters_of_several_bytes_stay_whole() {
    let mut acceptor = Acceptor::new(limits(&["\u{1F600}!"]));
    assert_eq!(
        feed(&mut acceptor, &["é\u{1F600}", "?ü", "\u{1F600}", "!x"]),
        ["é", "\u{1F600}?ü", "", ""]
    );
    assert_eq!(acceptor.text(), "é\u{1F600}?ü");
    // The stop text shares its first byte with the text, not its first character.
    let mut acceptor = Acceptor::new(limits(&["è"]));
    assert_eq!(feed(&mut acceptor, &["é", "è"]), ["é", ""]);
}

#[test]
fn an_end_token_is_counted_and_not_shown() {
    let mut acceptor = Acceptor::new(limits(&[]));
    for token in [1, 2] {
        assert_eq!(acceptor.accept(token, "a"), None);
    }
    let stop = Finish { reason: FinishReason::Stop, stop: Some(Stop::Token(EOS)) };
    assert_eq!(acceptor.accept(EOS, "</s>").cloned(), Some(stop.clone()));
    // The rest of the block is not taken.
    assert_eq!(acceptor.accept(4, "late").cloned(), Some(stop));
    assert_eq!((acceptor.text(), acceptor.token_ids()), ("aa", &[1, 2, EOS][..]));
}

#[test]
fn stop_tokens_of_the_request_hold_when_end_tokens_are_ignored() {
    let limits = Limits { ignore_eos: true, stop_token_ids: vec![5], ..limits(&[]) };
    let mut acceptor = Acceptor::new(limits);
    assert_eq!(acceptor.accept(EOS, "</s>"), None);
    let end = acceptor.accept(5, "x").cloned();
    assert_eq!(end.and_then(|end| end.stop), Some(Stop::Token(5)));
    assert_eq!(acceptor.text(), "</s>");
}

#[test]
fn limits_end_exactly_where_they_say() {
    let length = Finish { reason: FinishReason::Length, stop: None };
    for (max_tokens, context_left) in [(3, 10), (10, 3), (3, 3)] {
        let mut acceptor = Acceptor::new(Limits { max_tokens, context_left, ..limits(&[]) });
        assert_eq!(acceptor.remaining(), 3);
        assert_eq!(acceptor.accept(1, "a"), None);
        assert_eq!(acceptor.accept(2, "b"), None);
        assert_eq!(acceptor.remaining(), 1);
        assert_eq!(acceptor.accept(3, "c").cloned(), Some(length.clone()));
        assert_eq!((acceptor.text(), acceptor.remaining()), ("abc", 0));
    }
}

#[test]
fn a_stop_on_the_last_token_is_a_stop() {
    let mut acceptor = Acceptor::new(Limits { max_tokens: 2, ..limits(&["b"]) });
    feed(&mut acceptor, &["a", "b"]);
    assert_eq!(acceptor.finished().cloned(), Some(text_stop("b")));
    let mut acceptor = Acceptor::new(Limits { max_tokens: 1, ..limits(&[]) });
    assert_eq!(acceptor.accept(EOS, "").map(|end| end.reason), Some(FinishReason::Stop));
}

#[test]
fn no_stop_text_ends_with_the_first_tokens() {
    for (min_tokens, text) in [(1, "ab"), (2, "ab.c"), (3, "ab.c")] {
        let mut acceptor = Acceptor::new(Limits { min_tokens, ..limits(&["."]) });
        let streamed = feed(&mut acceptor, &["a", "b.", "c", "."]).concat();
        assert_eq!((acceptor.text(), streamed.as_str()), (text, text), "{min_tokens}");
        assert_eq!(acceptor.finished().cloned(), Some(text_stop(".")));
    }
    // One that begins with them and ends behind them counts, and was held back.
    let mut acceptor = Acceptor::new(Limits { min_tokens: 2, ..limits(&["END"]) });
    let streamed = feed(&mut acceptor, &["END a", "bE", "ND", "c"]);
    assert_eq!(streamed, ["END a", "b", ""]);
    assert_eq!(acceptor.finished().cloned(), Some(text_stop("END")));
    // Not all of them were said: the decoder's tail ends nothing either.
    let mut acceptor = Acceptor::new(Limits { min_tokens: 2, max_tokens: 2, ..limits(&["b"]) });
    feed(&mut acceptor, &["a", "a"]);
    acceptor.flush("b");
    assert_eq!(acceptor.text(), "aab");
}

#[test]
fn the_decoders_tail_is_part_of_the_text() {
    let mut acceptor = Acceptor::new(Limits { max_tokens: 1, ..limits(&["b\u{fffd}"]) });
    acceptor.accept(0, "ab");
    acceptor.flush("c");
    assert_eq!((acceptor.take_text().as_str(), acceptor.text()), ("abc", "abc"));
    // It may complete a stop text.
    let mut acceptor = Acceptor::new(Limits { max_tokens: 1, ..limits(&["b\u{fffd}"]) });
    acceptor.accept(0, "ab");
    acceptor.flush("\u{fffd}");
    assert_eq!(
        (acceptor.text(), acceptor.finished().cloned()),
        ("a", Some(text_stop("b\u{fffd}")))
    );
    // After a stop text it is dropped.
    let mut acceptor = Acceptor::new(limits(&["b"]));
    acceptor.accept(0, "ab");
    acceptor.flush("c");
    assert_eq!(acceptor.take_text(), "a");
}

#[test]
fn empty_stop_texts_never_match() {
    let mut acceptor = Acceptor::new(limits(&["", "x"]));
    assert_eq!(feed(&mut acceptor, &["", "a", ""]), ["", "a", ""]);
}

/// What the text and stop must be: the first prefix of `text`, character by character, that ends
/// with a stop text; the longest such.
fn slowly(text: &str, stops: &[String]) -> (String, Option<String>) {
    let ends = text.char_indices().map(|(i, c)| i + c.len_utf8());
    for end in ends {
        let here = stops.iter().filter(|stop| text[..end].ends_with(stop.as_str()));
        if let Some(stop) = here.max_by_key(|stop| stop.len()) {
            return (text[..end - stop.len()].to_owned(), Some(stop.clone()));
        }
    }
    (text.to_owned(), None)
}

proptest! {
    /// Few letters, so that stop texts are found, begun and abandoned often.
    #[test]
    fn text_does_not_depend_on_its_pieces(
        pieces in prop::collection::vec("[ab\u{e9}]{0,4}", 0..12),
        stops in prop::collection::vec("[ab\u{e9}]{1,4}", 0..4),
    ) {
        let all = Limits { stop: stops.clone(), max_tokens: 100, context_left: 100, ..Limits::default() };
        let mut acceptor = Acceptor::new(all);
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let (text, stop) = slowly(&pieces.concat(), &stops);
        let mut streamed = String::new();
        for part in feed(&mut acceptor, &pieces) {
            streamed.push_str(&part);
            prop_assert!(text.starts_with(&streamed), "streamed {:?} of {:?}", streamed, text);
        }
        acceptor.close(FinishReason::Abort);
        streamed.push_str(&acceptor.take_text());
        prop_assert_eq!(&streamed, &text);
        prop_assert_eq!(acceptor.text(), &text);
        let found = match acceptor.finished().and_then(|end| end.stop.clone()) {
            Some(Stop::Text(found)) => Some(found),
            _ => None,
        };
        prop_assert_eq!(found, stop);
    }

    /// At every moment all is streamed but the longest end that a stop text begins with.
    #[test]
    fn nothing_is_held_back_without_need(
        text in "[ab]{0,12}",
        stops in prop::collection::vec("[ab]{1,5}", 0..3),
    ) {
        let all = Limits { stop: stops.clone(), max_tokens: 9, context_left: 9, ..Limits::default() };
        let mut acceptor = Acceptor::new(all);
        if acceptor.accept(0, &text).is_none() {
            let streamed = acceptor.take_text();
            let held = &text[streamed.len()..];
            let begins = |end: &str| stops.iter().any(|stop| stop.starts_with(end));
            prop_assert!(held.is_empty() || begins(held));
            for longer in 0..streamed.len() {
                prop_assert!(!begins(&text[longer..]));
            }
        }
    }
}

#[test]
fn what_ended_the_text_stays_when_asked_for() {
    let included = Limits { include_stop: true, ..limits(&["stop"]) };
    let mut acceptor = Acceptor::new(included.clone());
    for (token, piece) in [(1, "a st"), (2, "op b")] {
        acceptor.accept(token, piece);
    }
    assert_eq!(acceptor.take_text(), "a stop");
    let mut acceptor = Acceptor::new(Limits { stop_token_ids: vec![5], ..included });
    acceptor.accept(1, "a");
    acceptor.accept(5, "<end>");
    assert_eq!(acceptor.take_text(), "a<end>");
}
