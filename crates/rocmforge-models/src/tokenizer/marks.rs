//! Marks: texts that end answers in every vocabulary that has them.

/// Texts that end a turn or a message in known model families, and are nothing else. Metadata often name only one of several:
/// Llama 3 ends turns with `<|eot_id|>` though `eos` is `<|end_of_text|>`. Some files mark them as ordinary tokens by mistake.
pub(super) const MARKS: &[&str] = &[
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<|end_of_text|>",
    // gpt-oss.
    "<|return|>",
    "<|call|>",
    // Solar Open.
    "<|flush|>",
    "<|calls|>",
    // SmolDocling.
    "<end_of_utterance>",
    // Gemma 4.
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    // MiniMax.
    "[e~[",
];

/// Whether a token of this text ends answers, whatever its type.
pub(super) fn is_mark(text: &str) -> bool {
    MARKS.contains(&text)
}
