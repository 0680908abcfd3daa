//! Stop strings: ends a streamed text at the first of some strings, none of which the reader ever sees a part of.
//!
//! ```
//! use rocmforge_models::stop::StopStrings;
//!
//! let mut stop = StopStrings::new(vec!["</answer>".into(), "\nUser:".into()]);
//! assert_eq!(stop.push("It is 42.<").text, "It is 42."); // "<" may begin a stop string
//! assert_eq!(stop.push("/b>").text, "</b>"); // it did not
//! let end = stop.push("\nUser: and now?");
//! assert_eq!((end.text.as_str(), end.stopped), ("", Some(1)));
//! ```

/// What can be shown after a piece of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Emit {
    /// Text that can be shown now.
    pub text: String,
    /// Index of the stop string that ends the text. Nothing is to be shown after `text`.
    pub stopped: Option<usize>,
}

/// Searches a streamed text for stop strings.
///
/// The text ends as soon as it contains a stop string, and is cut where that one begins; if several end at the same byte, the longest
/// counts, and of equal ones the first given. How the text is cut into pieces makes no difference. Empty strings are ignored.
///
/// A suffix that may be the start of a stop string is held back until more of the text is known: less than the longest stop string.
#[derive(Clone, Debug)]
pub struct StopStrings {
    stops: Vec<String>,
    held: String,
    stopped: Option<usize>,
}

impl StopStrings {
    /// A search for these strings from the start of a text.
    pub fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            held: String::new(),
            stopped: None,
        }
    }

    /// Takes the next piece of the text. Once a stop string was found, further pieces are dropped.
    pub fn push(&mut self, text: &str) -> Emit {
        if self.stopped.is_none() {
            self.held.push_str(text);
            let matches = self.stops.iter().enumerate().filter(|(_, stop)| !stop.is_empty());
            let first = matches
                .filter_map(|(index, stop)| self.held.find(stop).map(|begin| (begin + stop.len(), begin, index)))
                .min();
            if let Some((_, begin, index)) = first {
                self.stopped = Some(index);
                self.held.truncate(begin);
            } else {
                let rest = self.held.split_off(self.held.len() - self.open_suffix());
                let text = std::mem::replace(&mut self.held, rest);
                return Emit { text, stopped: None };
            }
        }
        self.finish()
    }

    /// Length in bytes of the longest suffix of the text that begins a stop string.
    fn open_suffix(&self) -> usize {
        let longest = |stop: &String| {
            let most = self.held.len().min(stop.len().saturating_sub(1));
            let begins = |len: &usize| stop.is_char_boundary(*len) && self.held.ends_with(&stop[..*len]);
            (1..=most).rev().find(begins).unwrap_or(0)
        };
        self.stops.iter().map(longest).max().unwrap_or(0)
    }

    /// Ends the text: what was held back can be shown.
    pub fn finish(&mut self) -> Emit {
        Emit {
            text: std::mem::take(&mut self.held),
            stopped: self.stopped,
        }
    }
}

#[cfg(test)]
mod tests {
    use rocmforge_testkit::data::rng;

    use super::*;

    /// The definition: the text grows character by character until it contains a stop string.
    fn definition(stops: &[String], text: &str) -> (String, Option<usize>) {
        let mut seen = String::new();
        for c in text.chars() {
            seen.push(c);
            let ends: Vec<usize> = (0..stops.len())
                .filter(|&i| !stops[i].is_empty() && seen.ends_with(&stops[i]))
                .collect();
            let longest = ends.iter().map(|&i| stops[i].len()).max();
            if let Some(longest) = longest {
                let index = ends.into_iter().find(|&i| stops[i].len() == longest);
                seen.truncate(seen.len() - longest);
                return (seen, index);
            }
        }
        (seen, None)
    }

    #[test]
    fn any_split_gives_the_text_up_to_the_first_stop_string() {
        let mut rng = rng(31);
        // Characters of one to four bytes; the second and third share their first byte.
        let alphabet = ['a', 'é', 'è', '€', '🙂'];
        let (mut stopped, mut late) = (0, 0);
        for round in 0..20_000 {
            let kinds = 1 + rng.below(alphabet.len());
            let mut string =
                |most: usize| -> String { (0..rng.below(most + 1)).map(|_| alphabet[rng.below(kinds)]).collect() };
            let stops: Vec<String> = (0..round % 4).map(|_| string(5)).collect();
            let text = string(30);
            let expected = definition(&stops, &text);
            let longest = stops.iter().map(String::len).max().unwrap_or(0);

            let mut search = StopStrings::new(stops.clone());
            let (mut shown, mut given, mut found) = (String::new(), 0, None);
            let mut pieces: Vec<String> = Vec::new();
            for c in text.chars() {
                match pieces.last_mut() {
                    Some(piece) if rng.below(3) > 0 => piece.push(c),
                    _ => pieces.push(c.to_string()),
                }
                if rng.below(9) == 0 {
                    pieces.push(String::new());
                }
            }
            for piece in &pieces {
                let emit = search.push(piece);
                given += piece.len();
                shown += &emit.text;
                assert!(
                    expected.0.starts_with(&shown),
                    "{shown:?} is shown of {text:?}, {stops:?}"
                );
                if found.is_some() {
                    assert_eq!(
                        emit,
                        Emit {
                            text: String::new(),
                            stopped: found
                        }
                    );
                } else if emit.stopped.is_none() {
                    assert!(
                        given - shown.len() < longest.max(1),
                        "{text:?}, {stops:?}: too much is held back"
                    );
                    late += usize::from(given > shown.len());
                }
                found = emit.stopped;
            }
            let emit = search.finish();
            shown += &emit.text;
            assert_eq!((shown, emit.stopped), expected, "{text:?}, {stops:?}, {pieces:?}");
            assert_eq!(
                emit.stopped, found,
                "a stop string is found when its last byte is there"
            );
            stopped += usize::from(found.is_some());
        }
        assert!(stopped > 5000 && late > 5000, "{stopped} {late}");
    }

    #[test]
    fn only_what_may_begin_a_stop_string_is_held_back() {
        let mut search = StopStrings::new(vec!["STOP".into(), "aab".into()]);
        assert_eq!(search.push("xaaS").text, "xaa");
        assert_eq!(search.push("TO").text, "");
        assert_eq!(search.push("Taa").text, "STOT");
        assert_eq!(search.push("a").text, "a"); // "aa" may still begin "aab"
        let end = search.push("b and more");
        assert_eq!((end.text.as_str(), end.stopped), ("", Some(1)));
        assert_eq!(
            search.push("STOP"),
            Emit {
                text: String::new(),
                stopped: Some(1)
            }
        );
    }

    #[test]
    fn without_stop_strings_all_text_passes() {
        for stops in [vec![], vec![String::new()]] {
            let mut search = StopStrings::new(stops);
            assert_eq!(
                search.push("é🙂"),
                Emit {
                    text: "é🙂".into(),
                    stopped: None
                }
            );
            assert_eq!(search.push(""), Emit::default());
            assert_eq!(search.finish(), Emit::default());
        }
    }
}
