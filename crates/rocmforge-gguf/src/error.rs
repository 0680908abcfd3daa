//! Errors of reading, writing and decoding, each with the place and the figures.

use std::io;
use std::path::{Path, PathBuf};

use crate::tensor_type::TensorType;
use crate::value::ValueType;

/// The result of this crate's functions.
pub type Result<T, E = GgufError> = std::result::Result<T, E>;

/// What is wrong with a file, a request or a block. Positions (`at`) are byte offsets from the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgufError {
    /// The operating system refused a file operation.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried: "open", "map", "read", "write" or "rename".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// An error inside a named file; see [`GgufError::root`].
    #[error("`{}`: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        source: Box<GgufError>,
    },
    /// A stream given to the writer failed.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),

    /// The first four bytes are not `GGUF`.
    #[error("it is no GGUF file: the first bytes are {found:02x?} where `GGUF` (47 47 55 46) must stand")]
    BadMagic {
        /// The bytes that stand there.
        found: [u8; 4],
    },
    /// The file was written for a machine of the other byte order.
    #[error("the file is big-endian (its version reads {version:#010x}); only little-endian files are read")]
    OtherEndianness {
        /// The version as a little-endian number.
        version: u32,
    },
    /// Version 1, which has 32-bit counts and has not been written since 2023.
    #[error("GGUF version 1 is not supported (its counts have 32 bits); convert the model again")]
    Version1,
    /// A version after 3, or version 0.
    #[error("GGUF version {version} is not known; versions 2 and 3 are read")]
    UnknownVersion {
        /// The version.
        version: u32,
    },
    /// The file ends inside something.
    #[error("the file ends inside {what}: {need} bytes are needed at byte {at} and {have} are there")]
    Truncated {
        /// What is cut off.
        what: &'static str,
        /// Where it starts.
        at: u64,
        /// Bytes that it takes.
        need: u64,
        /// Bytes that are left from there.
        have: u64,
    },
    /// A count in the file is larger than the rest of the file can hold, or than the format allows.
    #[error("{count} {what} at byte {at}: at most {most} are possible there")]
    TooMany {
        /// What is counted.
        what: &'static str,
        /// Where the count stands.
        at: u64,
        /// The count.
        count: u64,
        /// The limit.
        most: u64,
    },
    /// A string is not UTF-8.
    #[error("{what} at byte {at} is not UTF-8: its byte {valid} starts no character")]
    NotUtf8 {
        /// What the string is.
        what: &'static str,
        /// Where its bytes start.
        at: u64,
        /// How many of its bytes are good.
        valid: usize,
    },
    /// A name holds a control character.
    #[error("{what} at byte {at} holds the control character {character:?}")]
    ControlCharacter {
        /// What the name is of.
        what: &'static str,
        /// Where its bytes start.
        at: u64,
        /// The first such character.
        character: char,
    },
    /// A metadata key has no characters.
    #[error("the metadata key at byte {at} is empty")]
    EmptyKey {
        /// Where the key stands.
        at: u64,
    },
    /// A metadata key is longer than 65,535 bytes.
    #[error("the metadata key at byte {at} has {len} bytes; at most {most} are allowed")]
    KeyTooLong {
        /// Where the key stands.
        at: u64,
        /// Its length in bytes.
        len: u64,
        /// The limit.
        most: u64,
    },
    /// A metadata key stands twice.
    #[error("the metadata key `{key}` at byte {at} has been there before")]
    DuplicateKey {
        /// The key.
        key: String,
        /// Where it stands the second time.
        at: u64,
    },
    /// A metadata value has an unknown type.
    #[error("metadata `{key}`: {id} at byte {at} is no value type")]
    UnknownValueType {
        /// The key.
        key: String,
        /// The type's number.
        id: u32,
        /// Where it stands.
        at: u64,
    },
    /// An array's elements are arrays.
    #[error("metadata `{key}`: an array of arrays at byte {at}")]
    NestedArray {
        /// The key.
        key: String,
        /// Where the element type stands.
        at: u64,
    },
    /// A truth value is neither 0 nor 1.
    #[error("metadata `{key}`: the bool at byte {at} is {value}; only 0 and 1 are allowed")]
    BadBool {
        /// The key.
        key: String,
        /// The byte.
        value: u8,
        /// Where it stands.
        at: u64,
    },
    /// `general.alignment` is no power of two, or larger than 1 MiB.
    #[error("general.alignment is {alignment}; it must be a power of two of at most {most}")]
    BadAlignment {
        /// The value.
        alignment: u64,
        /// The limit.
        most: u64,
    },

    /// A tensor's name is empty or longer than 63 bytes.
    #[error("the tensor name at byte {at} has {len} bytes; 1 to {most} are allowed")]
    BadNameLength {
        /// Where the name stands.
        at: u64,
        /// Its length in bytes.
        len: u64,
        /// The limit.
        most: u64,
    },
    /// Two tensors have one name.
    #[error("two tensors are named `{name}`")]
    DuplicateTensor {
        /// The name.
        name: String,
    },
    /// A tensor has no dimension, or more than four.
    #[error("tensor `{name}` has {n_dims} dimensions; 1 to 4 are allowed")]
    BadDimCount {
        /// The tensor.
        name: String,
        /// Its number of dimensions.
        n_dims: u64,
    },
    /// A dimension is zero.
    #[error("tensor `{name}`: dimension {axis} is 0")]
    ZeroDim {
        /// The tensor.
        name: String,
        /// The dimension's number; 0 is the contiguous one.
        axis: usize,
    },
    /// The number of elements or bytes exceeds what can be addressed.
    #[error("tensor `{name}` of dimensions {dims:?} is too large to address")]
    TensorTooLarge {
        /// The tensor.
        name: String,
        /// Its dimensions, the contiguous one first.
        dims: Vec<u64>,
    },
    /// A tensor has an unknown or withdrawn type.
    #[error("tensor `{name}`: {id} is no tensor type")]
    UnknownTensorType {
        /// The tensor.
        name: String,
        /// The type's number.
        id: u32,
    },
    /// A tensor's row is no whole number of blocks.
    #[error("tensor `{name}`: its rows have {ne0} elements, no multiple of the {block_len} of a {ty} block")]
    RowNotBlocks {
        /// The tensor.
        name: String,
        /// Elements of a row.
        ne0: u64,
        /// The type.
        ty: TensorType,
        /// Elements of a block.
        block_len: usize,
    },
    /// A tensor does not start where the tensor before it ends.
    #[error("tensor `{name}` has offset {offset}; {expected} is where the tensor before it ends")]
    BadOffset {
        /// The tensor.
        name: String,
        /// The offset in the file.
        offset: u64,
        /// The only offset that leaves no gap and no overlap.
        expected: u64,
    },
    /// A tensor's data go beyond the end of the file.
    #[error("tensor `{name}` ends at byte {end} and the file at byte {file_len}")]
    TensorPastEnd {
        /// The tensor.
        name: String,
        /// The end of its data.
        end: u64,
        /// The length of the file.
        file_len: u64,
    },

    /// The file is part of a split model and not its first part.
    #[error("it is part {} of {count} of a split model; open the first part", number + 1)]
    NotFirstPart {
        /// The part's number, from 0.
        number: u64,
        /// The number of parts.
        count: u64,
    },
    /// A split model's file is not named `PREFIX-00001-of-COUNT.gguf`, so the other parts cannot be found.
    #[error("the first of {count} parts must be named `PREFIX-00001-of-{count:05}.gguf`")]
    BadPartName {
        /// The number of parts.
        count: u64,
    },
    /// A part does not belong to the model.
    #[error("`{key}` is {found}; this part must have {expected}")]
    WrongPart {
        /// The metadata key.
        key: &'static str,
        /// What the key has in this part.
        found: u64,
        /// What it must have.
        expected: u64,
    },
    /// A split model was given as bytes, where there are no files beside it.
    #[error("the model is split into {count} parts and can only be opened by its path")]
    SplitInMemory {
        /// The number of parts.
        count: u64,
    },

    /// A metadata key is absent.
    #[error("metadata `{key}` is missing (expected: {expected})")]
    MissingKey {
        /// The key.
        key: String,
        /// The type that was asked for.
        expected: &'static str,
    },
    /// A metadata value has another type than was asked for.
    #[error("metadata `{key}` is {found} (expected: {expected})")]
    WrongType {
        /// The key.
        key: String,
        /// The type that was asked for.
        expected: &'static str,
        /// The type that is there.
        found: String,
    },
    /// A metadata number does not fit the type that was asked for.
    #[error("metadata `{key}` is {value} (expected: {expected})")]
    ValueOutOfRange {
        /// The key.
        key: String,
        /// The type that was asked for.
        expected: &'static str,
        /// The number that is there.
        value: i128,
    },

    /// This crate cannot decode the type; see [`crate::blocks::can_dequantize`].
    #[error("there is no decoder for {ty}")]
    NoDecoder {
        /// The type.
        ty: TensorType,
    },
    /// This crate cannot encode the type; see [`crate::blocks::can_quantize`].
    #[error("there is no encoder for {ty}")]
    NoEncoder {
        /// The type.
        ty: TensorType,
    },
    /// Bytes are no whole number of blocks.
    #[error("{len} bytes are no whole number of {ty} blocks of {block_bytes} bytes")]
    PartialBlock {
        /// The type.
        ty: TensorType,
        /// The number of bytes.
        len: usize,
        /// Bytes of a block.
        block_bytes: usize,
    },
    /// Values are no whole number of blocks.
    #[error("{len} values are no whole number of {ty} blocks of {block_len} values")]
    PartialBlockValues {
        /// The type.
        ty: TensorType,
        /// The number of values.
        len: usize,
        /// Elements of a block.
        block_len: usize,
    },
    /// The output does not hold exactly the decoded values.
    #[error("{expected} values of {ty} do not fit an output of {found}")]
    WrongOutputLength {
        /// The type.
        ty: TensorType,
        /// Decoded values.
        expected: usize,
        /// Places in the output.
        found: usize,
    },
    /// The bytes are not as many rows as there are places for their products.
    #[error("{found} bytes are not {rows} rows of {row_bytes} bytes of {ty}")]
    WrongRows {
        /// The type.
        ty: TensorType,
        /// Places in the output, one a row.
        rows: usize,
        /// Bytes of a row.
        row_bytes: usize,
        /// Bytes given.
        found: usize,
    },

    /// The writer was given a tensor whose bytes do not match its shape and type.
    #[error("tensor `{name}` has {found} bytes; its dimensions and type take {expected}")]
    WrongByteLength {
        /// The tensor.
        name: String,
        /// Bytes given.
        found: u64,
        /// Bytes that the shape and type take.
        expected: u64,
    },
    /// The writer was given `general.alignment` of another type than the format demands.
    #[error("general.alignment must be a u32, not {found}")]
    AlignmentType {
        /// The type given.
        found: ValueType,
    },
}

impl GgufError {
    /// The error without the names of files around it.
    pub fn root(&self) -> &GgufError {
        match self {
            GgufError::File { source, .. } => source.root(),
            error => error,
        }
    }

    /// The error with the name of the file around it. An I/O error has the name already.
    pub(crate) fn in_file(self, path: &Path) -> GgufError {
        match self {
            error @ (GgufError::Io { .. } | GgufError::File { .. }) => error,
            error => GgufError::File {
                path: path.to_path_buf(),
                source: Box::new(error),
            },
        }
    }
}
