//! Thinking: the part of an answer between a model's markers, which people see dim or folded.

/// Markers of models: begin and end.
const MARKERS: [[&str; 2]; 3] = [
    ["<think>", "</think>"],
    ["[THINK]", "[/THINK]"],
    ["<|START_THINKING|>", "<|END_THINKING|>"],
];

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// What the model says.
    Said(String),
    /// What it thinks.
    Thought(String),
}

/// Divides an answer, as it comes, into what is thought and what is said.
#[derive(Debug)]
pub(super) struct Thinking {
    markers: [&'static str; 2],
    is_inside: bool,
    /// Whether anything was said: thinking is before that.
    has_said: bool,
    /// Text that may be the begin of a marker.
    held: String,
}

impl Thinking {
    /// For a model with this template, and an answer after this prompt. A prompt may end inside of the thinking.
    pub(super) fn new(template: &str, prompt: &str) -> Self {
        let markers = MARKERS
            .into_iter()
            .find(|[begin, end]| template.contains(begin) || template.contains(end));
        let markers = markers.unwrap_or(MARKERS[0]);
        Self {
            markers,
            is_inside: prompt.trim_end().ends_with(markers[0]),
            has_said: false,
            held: String::new(),
        }
    }

    /// The parts that are certain after a further text.
    pub(super) fn add(&mut self, text: &str) -> Vec<Part> {
        self.held.push_str(text);
        let mut parts = Vec::new();
        loop {
            if !self.is_inside && self.has_said {
                parts.extend(self.part(self.held.len()));
                return parts;
            }
            let marker = self.markers[usize::from(self.is_inside)];
            if let Some(at) = self.held.find(marker) {
                let is_before_all = self.is_inside || self.held[..at].trim().is_empty();
                if is_before_all {
                    parts.extend(self.part(at));
                    self.held.drain(..marker.len());
                    self.is_inside = !self.is_inside;
                    continue;
                }
            }
            // The longest end that a marker begins with stays.
            let begins = |at: &usize| self.held.is_char_boundary(*at) && marker.starts_with(&self.held[*at..]);
            let from = (0..self.held.len()).find(begins).unwrap_or(self.held.len());
            parts.extend(self.part(from));
            return parts;
        }
    }

    /// What was held back, at the answer's end.
    pub(super) fn finish(&mut self) -> Option<Part> {
        self.part(self.held.len())
    }

    /// The first bytes of what is held.
    fn part(&mut self, bytes: usize) -> Option<Part> {
        let text: String = self.held.drain(..bytes).collect();
        if text.is_empty() {
            return None;
        }
        if self.is_inside {
            return Some(Part::Thought(text));
        }
        self.has_said |= !text.trim().is_empty();
        Some(Part::Said(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is thought and what is said of a text that comes in pieces of so many characters.
    fn divided(template: &str, prompt: &str, text: &str, size: usize) -> (String, String) {
        let mut thinking = Thinking::new(template, prompt);
        let letters: Vec<char> = text.chars().collect();
        let pieces = letters.chunks(size).map(|piece| piece.iter().collect::<String>());
        let mut parts: Vec<Part> = pieces.flat_map(|piece| thinking.add(&piece)).collect();
        parts.extend(thinking.finish());
        let (mut thought, mut said) = (String::new(), String::new());
        for part in parts {
            match part {
                Part::Thought(text) => thought.push_str(&text),
                Part::Said(text) => said.push_str(&text),
            }
        }
        (thought, said)
    }

    #[test]
    fn thinking_is_what_stands_between_the_markers_however_the_text_comes() {
        for size in [1, 2, 3, 7, 1000] {
            let both = |thought: &str, said: &str| (thought.to_owned(), said.to_owned());
            let of = |text| divided("", "", text, size);
            assert_eq!(of("<think>\nhm ü</think>\nyes"), both("\nhm ü", "\nyes"));
            assert_eq!(of("\n<think>a < b</think>c"), both("a < b", "\nc"));
            assert_eq!(of("no <think> here</think>"), both("", "no <think> here</think>"));
            assert_eq!(of("<think>cut off"), both("cut off", ""));
            assert_eq!(of("<thin"), both("", "<thin"));
            // The prompt ends inside.
            assert_eq!(
                divided("", "assistant<think>\n", "hm</think>yes", size),
                both("hm", "yes")
            );
            assert_eq!(divided("[THINK]", "", "[THINK]hm[/THINK]yes", size), both("hm", "yes"));
            assert_eq!(divided("[THINK]", "", "<think>x", size), both("", "<think>x"));
        }
    }
}
