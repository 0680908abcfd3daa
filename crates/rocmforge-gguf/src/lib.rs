//! GGUF files: reader, writer, and block formats.
