//! Thinking: splits an answer that begins with what the model thinks, in marks such as `<think>` and `</think>`, while it comes.

use super::ChatTemplate;
use crate::tokenizer::Tokenizer;

/// Marks of known models. Each model has one pair.
const KNOWN: [(&str, &str); 5] = [
    // Qwen, DeepSeek, GLM, MiniMax, SmolLM3, Granite, Nemotron.
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),                    // Mistral
    ("<seed:think>", "</seed:think>"),          // Seed-OSS
    ("<|START_THINKING|>", "<|END_THINKING|>"), // Command
    ("<|inner_prefix|>", "<|inner_suffix|>"),   // Apertus
];

/// Marks around what a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkingMarks {
    /// Before it.
    pub open: &'static str,
    /// After it.
    pub close: &'static str,
}

impl ThinkingMarks {
    /// The marks of a model: those that its template writes, or else those that are tokens of its vocabulary. `None` if it has none.
    #[must_use]
    pub fn of(template: &ChatTemplate, tokenizer: &Tokenizer) -> Option<Self> {
        let in_template = |(_, close): &(&str, &str)| template.source().contains(close);
        let are_tokens =
            |(open, close): &(&str, &str)| [open, close].iter().all(|mark| tokenizer.id_of(mark).is_some());
        let found = KNOWN.into_iter().find(in_template);
        let (open, close) = found.or_else(|| KNOWN.into_iter().find(are_tokens))?;
        Some(Self { open, close })
    }
}

/// Parts of an answer that can be shown now: what the model thinks, and after it what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThinkingSplit {
    /// What it thinks.
    pub reasoning: String,
    /// What it says.
    pub content: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing but white space, and what may begin the first mark, has come.
    Begin,
    /// After the first mark. It says whether anything but white space has come.
    Inside(bool),
    /// After the second mark, where nothing but white space has come.
    After,
    Content,
}

/// Splits an answer. How it is cut into pieces makes no difference.
///
/// Only an answer that begins with the first mark, or whose prompt ends with it, is split: marks further on are text. White space next to
/// the marks is dropped.
///
/// ```
/// use rocmforge_models::chat::{Thinking, ThinkingMarks};
///
/// let marks = ThinkingMarks { open: "<think>", close: "</think>" };
/// let mut thinking = Thinking::new(Some(marks), "<|im_start|>assistant\n");
/// assert_eq!(thinking.push("<thi").content, ""); // it may begin the mark
/// assert_eq!(thinking.push("nk>\nTwo and two.\n").reasoning, "Two and two.");
/// let split = thinking.push("</think>\n\n4");
/// assert_eq!((split.reasoning.as_str(), split.content.as_str()), ("", "4"));
/// ```
#[derive(Clone, Debug)]
pub struct Thinking {
    marks: Option<ThinkingMarks>,
    state: State,
    held: String,
}

impl Thinking {
    /// For an answer to a prompt that ends with this text. Without marks all of the answer is content.
    #[must_use]
    pub fn new(marks: Option<ThinkingMarks>, prompt_end: &str) -> Self {
        let is_open = |marks: &ThinkingMarks| prompt_end.trim_end().ends_with(marks.open);
        Self {
            marks,
            state: match &marks {
                None => State::Content,
                Some(marks) if is_open(marks) => State::Inside(false),
                Some(_) => State::Begin,
            },
            held: String::new(),
        }
    }

    /// Whether the model thinks at this place of the answer.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        matches!(self.state, State::Inside(_))
    }

    /// Takes a drawn token and the text that came with it. In some models the marks are control tokens, which have no text.
    pub fn push_token(&mut self, id: u32, text: &str, tokenizer: &Tokenizer) -> ThinkingSplit {
        let mark = self.marks.and_then(|marks| {
            let token = tokenizer.token(id).filter(|_| tokenizer.is_control(id))?;
            [marks.open, marks.close].into_iter().find(|mark| *mark == token)
        });
        match mark {
            None => self.push(text),
            Some(mark) => self.push(&format!("{text}{mark}")),
        }
    }

    /// Takes the next piece of the answer.
    pub fn push(&mut self, text: &str) -> ThinkingSplit {
        let mut split = ThinkingSplit::default();
        self.held.push_str(text);
        let Some(ThinkingMarks { open, close }) = self.marks else {
            split.content = std::mem::take(&mut self.held);
            return split;
        };
        loop {
            match self.state {
                State::Begin => {
                    let rest = self.held.trim_start();
                    if let Some(rest) = rest.strip_prefix(open) {
                        self.held = rest.to_owned();
                        self.state = State::Inside(false);
                    } else if open.starts_with(rest) {
                        return split;
                    } else {
                        self.state = State::Content;
                    }
                }
                State::Inside(has_begun) => {
                    if !has_begun {
                        self.held = self.held.trim_start().to_owned();
                    }
                    let end = self.held.find(close);
                    let known = end.unwrap_or(self.held.len() - open_suffix(&self.held, close));
                    // White space is dropped if the mark follows it.
                    let shown = self.held[..known].trim_end().len();
                    split.reasoning.push_str(&self.held[..shown]);
                    if end.is_none() {
                        self.state = State::Inside(has_begun || shown > 0);
                        self.held.drain(..shown);
                        return split;
                    }
                    self.held.drain(..known + close.len());
                    self.state = State::After;
                }
                State::After => {
                    self.held = self.held.trim_start().to_owned();
                    if self.held.is_empty() {
                        return split;
                    }
                    self.state = State::Content;
                }
                State::Content => {
                    split.content.push_str(&std::mem::take(&mut self.held));
                    return split;
                }
            }
        }
    }

    /// Ends the answer: what was held back can be shown.
    pub fn finish(&mut self) -> ThinkingSplit {
        let held = std::mem::take(&mut self.held);
        match self.state {
            State::Inside(_) => ThinkingSplit {
                reasoning: held.trim_end().to_owned(),
                content: String::new(),
            },
            _ => ThinkingSplit {
                reasoning: String::new(),
                content: held,
            },
        }
    }
}

/// Length in bytes of the longest end of `text` that begins `mark`.
fn open_suffix(text: &str, mark: &str) -> usize {
    let lengths = (1..mark.len()).rev();
    let begins = |len: &usize| mark.is_char_boundary(*len) && text.ends_with(&mark[..*len]);
    lengths.filter(|len| *len <= text.len()).find(begins).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rocmforge_testkit::data::rng;

    use super::*;

    const MARKS: ThinkingMarks = ThinkingMarks {
        open: "<think>",
        close: "</think>",
    };

    /// The definition, of a whole text.
    fn definition(text: &str, is_open: bool) -> (String, String) {
        let inside = match is_open {
            true => Some(text),
            false => text.trim_start().strip_prefix(MARKS.open),
        };
        let parts = inside.map(|inside| inside.split_once(MARKS.close).unwrap_or((inside, "")));
        match parts {
            None => (String::new(), text.to_owned()),
            Some((reasoning, content)) => (reasoning.trim().to_owned(), content.trim_start().to_owned()),
        }
    }

    #[test]
    fn any_split_gives_the_parts_of_the_whole_text() {
        let mut rng = rng(43);
        let words = [
            "<think>", "</think>", "</thi", "<", "é", " ", "\n\n", "so", "<think", "4",
        ];
        let (mut thought, mut said) = (0, 0);
        for round in 0..20_000 {
            let mut text: String = (0..rng.below(9)).map(|_| words[rng.below(words.len())]).collect();
            if round % 3 == 0 {
                text.insert_str(0, "\n<think>");
            }
            let is_open = round % 4 == 1;
            let end = if is_open {
                "assistant\n<think>\n"
            } else {
                "assistant\n<think>\n\n</think>"
            };
            let mut thinking = Thinking::new(Some(MARKS), end);
            let (mut reasoning, mut content) = (String::new(), String::new());
            let mut take = |split: ThinkingSplit| {
                assert!(content.is_empty() || split.reasoning.is_empty(), "{text:?}");
                reasoning += &split.reasoning;
                content += &split.content;
            };
            let mut piece = String::new();
            for c in text.chars() {
                piece.push(c);
                if rng.below(3) == 0 {
                    take(thinking.push(&std::mem::take(&mut piece)));
                }
            }
            take(thinking.push(&piece));
            take(thinking.finish());
            assert_eq!(
                (reasoning.clone(), content.clone()),
                definition(&text, is_open),
                "{text:?}"
            );
            thought += usize::from(!reasoning.is_empty());
            said += usize::from(!content.is_empty());
        }
        assert!(thought > 2000 && said > 2000, "{thought} {said}");
    }

    #[test]
    fn without_marks_all_is_content() {
        let mut thinking = Thinking::new(None, "<think>");
        assert_eq!(thinking.push(" <think>x</think>").content, " <think>x</think>");
        assert_eq!(thinking.finish(), ThinkingSplit::default());
    }
}
