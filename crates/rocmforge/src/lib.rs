//! LLM inference building blocks for AMD GPUs that share the card with a desktop.
