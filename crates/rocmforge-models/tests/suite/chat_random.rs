//! Mangled chat templates: parts of right ones, cut and put together at random. Whatever they are, they give a text or an error.

use std::path::Path;

use rocmforge_models::chat::{ChatTemplate, Conversation, Message, Role};
use rocmforge_testkit::data::rng;
use serde_json::json;

/// Templates that are made.
const TEMPLATES: usize = 4_000;

/// What a number or text may become.
const EXTREMES: [&str; 16] = [
    "0",
    "-1",
    "2147483647",
    "-9223372036854775808",
    "170141183460469231731687303715884105727",
    "1e308",
    "'nan'|float",
    "none",
    "missing",
    "''",
    "'é🙂\\x00'",
    "[]",
    "{}",
    "[none, 1, 'a']",
    "messages",
    "range(3)",
];

#[test]
fn mangled_templates_give_a_text_or_an_error() {
    let snippets = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/chat/snippets.txt");
    let text = std::fs::read_to_string(snippets).expect("a committed file");
    let lines: Vec<Vec<char>> = text
        .lines()
        .map(|line| line.replace('⏎', "\n").chars().collect())
        .collect();
    let messages = [Message::new(Role::User, "hi"), Message::new(Role::Assistant, "é")];
    let tools = [json!({"b": 1, "a": [1.5, null, {"x": "y"}]})];
    let conversation = Conversation {
        tools: Some(&tools),
        ..Conversation::new(&messages)
    };
    let mut rng = rng(41);
    let (mut texts, mut errors) = (0, 0);
    for _ in 0..TEMPLATES {
        let mut template: Vec<char> = Vec::new();
        for _ in 0..1 + rng.below(3) {
            let line = &lines[rng.below(lines.len())];
            let (mut from, mut to) = (0, line.len());
            if rng.below(3) == 0 {
                from = rng.below(line.len() + 1);
                to = from + rng.below(line.len() - from + 1);
            }
            template.extend(&line[from..to]);
        }
        for _ in 0..rng.below(4) {
            let at = rng.below(template.len() + 1);
            match rng.below(4) {
                0 if at < template.len() => drop(template.remove(at)),
                1 => {
                    let character = text.chars().nth(rng.below(text.len() / 2));
                    template.extend(character);
                    let last = template.len() - 1;
                    template.swap(at.min(last), last);
                }
                // A number or a text becomes an extreme one.
                _ => {
                    let found = (at..template.len()).find(|at| template[*at].is_ascii_digit());
                    if let Some(at) = found {
                        let extreme = EXTREMES[rng.below(EXTREMES.len())];
                        template.splice(at..=at, extreme.chars());
                    }
                }
            }
        }
        let source: String = template.into_iter().collect();
        let result = ChatTemplate::new(&source, None, None).and_then(|template| template.render(&conversation));
        match result {
            Ok(_) => texts += 1,
            Err(error) => {
                errors += 1;
                assert!(!error.to_string().is_empty());
            }
        }
    }
    println!("{texts} texts, {errors} errors");
    assert!(
        texts > TEMPLATES / 50 && errors > TEMPLATES / 50,
        "{texts} texts, {errors} errors"
    );
}
