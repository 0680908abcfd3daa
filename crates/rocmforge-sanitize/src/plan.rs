//! A launch file and its object, checked against each other: what is left to go wrong is the kernel.

use crate::bundle;
use crate::dtype::{DType, Number};
use crate::error::{Error, Place};
use crate::fill::Fill;
use crate::launch_file::{Argument, Launch, LaunchFile};
use crate::npy;
use crate::object_file::{ObjectFile, argument, is_pointer, signature};
use rocmforge_code_object::{ArgMeta, KernelMeta};
use std::path::Path;

/// A launch file that can run.
#[derive(Debug)]
pub struct Plan {
    /// The launch file.
    pub file: LaunchFile,
    /// Its object.
    pub object: ObjectFile,
    /// What each buffer holds at first; none for memory that nobody writes.
    pub(crate) contents: Vec<Option<Vec<u8>>>,
    /// The values of each launch's arguments.
    pub(crate) values: Vec<Vec<Value>>,
}

/// An argument's bytes, or an address that is only known when the buffers are there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bytes(Vec<u8>),
    Address { buffer: usize, offset: u64 },
}

impl Plan {
    /// Reads the object and the files that fill buffers, none outside of the launch file's folder unless
    /// [`LaunchFile::allow_outside`], and compares every argument with what the object says of it.
    ///
    /// # Errors
    /// A file cannot be read or lies outside, the object cannot be executed, or a launch does not fit its kernel.
    pub fn new(file: LaunchFile) -> Result<Self, Error> {
        for path in file.buffers.iter().filter_map(|buffer| buffer.save.as_ref()) {
            file.folder().check_output(path)?;
        }
        let bytes = file.folder().read(&file.object, bundle::MAX_UNPACKED)?;
        Self::with_object(file, &bytes)
    }

    /// The same with the object's bytes at hand; the path in the launch file is for messages only.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_object(file: LaunchFile, bytes: &[u8]) -> Result<Self, Error> {
        let object = ObjectFile::parse(bytes, file.arch).map_err(|source| source.of(&file.object))?;
        Self::of(file, object)
    }

    /// The same for a device that is not simulated: of the object only what it says of itself is looked at.
    ///
    /// # Errors
    /// A file cannot be read, or a launch does not fit its kernel.
    pub fn for_device(file: LaunchFile, object: ObjectFile) -> Result<Self, Error> {
        Self::fitting(file, object)
    }

    fn of(file: LaunchFile, object: ObjectFile) -> Result<Self, Error> {
        let kernels = file.launches.iter().map(|launch| launch.kernel.as_str());
        object.check(kernels).map_err(|source| source.of(&file.object))?;
        Self::fitting(file, object)
    }

    fn fitting(file: LaunchFile, object: ObjectFile) -> Result<Self, Error> {
        let contents = file
            .buffers
            .iter()
            .map(|buffer| contents(&file, buffer))
            .collect::<Result<Vec<_>, _>>()?;
        let values = file
            .launches
            .iter()
            .map(|launch| values(launch, &file, &object))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            file,
            object,
            contents,
            values,
        })
    }
}

fn contents(file: &LaunchFile, buffer: &crate::Buffer) -> Result<Option<Vec<u8>>, Error> {
    let Fill::File(path) = &buffer.fill else {
        return Ok(buffer.fill.bytes(buffer.dtype, buffer.count()));
    };
    let wrong = |problem: String| Error::value(buffer.place.clone(), &buffer.label, problem);
    // A file that is longer than buffer and header is refused before all of it is read.
    let bytes = file.folder().read(path, buffer.bytes() as u64 + npy::MAX_HEADER)?;
    let bytes = match npy::parse(&bytes) {
        None => bytes,
        Some(Ok(array)) if array.descr == buffer.dtype.npy() => array.data.to_vec(),
        Some(Ok(array)) => {
            return Err(wrong(format!(
                "is {}, the array in {} is \"{}\"",
                buffer.dtype,
                path.display(),
                array.descr
            )));
        }
        Some(Err(problem)) => return Err(wrong(format!("is filled from {}: {problem}", path.display()))),
    };
    if bytes.len() != buffer.bytes() {
        return Err(wrong(format!(
            "has {} B, {} has {} B",
            buffer.bytes(),
            path.display(),
            bytes.len()
        )));
    }
    Ok(Some(bytes))
}

fn values(launch: &Launch, file: &LaunchFile, object: &ObjectFile) -> Result<Vec<Value>, Error> {
    let kernel = object.meta.kernel(&launch.kernel).ok_or_else(|| Error::NoSuchKernel {
        at: launch.place.clone(),
        kernel: launch.kernel.clone(),
        object: file.object.clone(),
        known: object.names(),
    })?;
    let expected = kernel.explicit_args().count();
    if expected != launch.args.len() {
        return Err(Error::ArgumentCount {
            at: launch.place.clone(),
            kernel: kernel.name.clone(),
            expected,
            given: launch.args.len(),
            signature: signature(kernel),
        });
    }
    geometry(launch, kernel)?;
    let fits = kernel.explicit_args().zip(&launch.args).enumerate();
    fits.map(|(index, (meta, given))| {
        value(meta, given, file).map_err(|problem| Error::Argument {
            at: launch.place.clone(),
            kernel: kernel.name.clone(),
            index,
            problem,
            signature: signature(kernel),
        })
    })
    .collect()
}

/// Groups of a launch, as HIP has it on these cards.
const MAX_GRID: [u32; 3] = [2_147_483_647, 65_536, 65_536];

/// What HIP would refuse, in words.
fn geometry(launch: &Launch, kernel: &KernelMeta) -> Result<(), Error> {
    let wrong = |key: &str, problem: String| Err(Error::value(launch.place.clone(), key, problem));
    let threads: u64 = launch.block.iter().fold(1, |n, d| n.saturating_mul(u64::from(*d)));
    if threads > u64::from(kernel.max_workgroup_size) {
        let most = kernel.max_workgroup_size;
        return wrong(
            "block",
            format!(
                "has {threads} work-items; {} was compiled for up to {most}",
                kernel.name
            ),
        );
    }
    if let Some(required) = kernel.required_workgroup_size
        && required != launch.block
    {
        return wrong(
            "block",
            format!(
                "is {:?}; {} was compiled for exactly {required:?}",
                launch.block, kernel.name
            ),
        );
    }
    let sizes = launch.grid.iter().zip(launch.block).zip(MAX_GRID);
    for ((&groups, size), most) in sizes {
        if groups > most || u64::from(groups) * u64::from(size) > u64::from(u32::MAX) {
            return wrong(
                "grid",
                format!(
                    "is {:?}; a launch has at most {MAX_GRID:?} groups, and {} work-items in a direction",
                    launch.grid,
                    u32::MAX
                ),
            );
        }
    }
    let lds = u64::from(kernel.lds_size) + u64::from(launch.lds);
    if lds > u64::from(rocmforge_amdgcn::MAX_LDS) {
        let own = kernel.lds_size;
        return wrong(
            "lds",
            format!(
                "and the {own} B of {} are {lds} B together; 65536 B are the most",
                kernel.name
            ),
        );
    }
    Ok(())
}

fn value(meta: &ArgMeta, given: &Argument, file: &LaunchFile) -> Result<Value, String> {
    let wanted = argument(meta);
    match given {
        Argument::Buffer { index, offset } => {
            let buffer = &file.buffers[*index];
            if meta.size != 8 {
                return Err(format!("is {wanted}, a buffer is given"));
            }
            if *offset > buffer.bytes() as u64 {
                return Err(format!("starts {offset} B into a buffer of {} B", buffer.bytes()));
            }
            Ok(Value::Address {
                buffer: *index,
                offset: *offset,
            })
        }
        Argument::Number(number) if is_pointer(meta) => match number {
            Number::Int(0) => Ok(Value::Bytes(vec![0; 8])),
            _ => Err(format!(
                "is {wanted}, {number} is given; give a buffer, or 0 for a null pointer, or {{ u64 = ... }} for an address"
            )),
        },
        Argument::Number(number) => encode(*number, meta.size)
            .map(Value::Bytes)
            .ok_or_else(|| format!("is {wanted}, which {number} is not; give its type, as {{ f16 = 1.0 }}")),
        Argument::Bytes(bytes) if bytes.len() == meta.size as usize => Ok(Value::Bytes(bytes.clone())),
        Argument::Bytes(bytes) => Err(format!("is {wanted}, {} B are given", bytes.len())),
    }
}

/// A number in as many bytes as the kernel has for it: with a point a float, else an integer of either sign.
fn encode(number: Number, size: u32) -> Option<Vec<u8>> {
    let types: &[DType] = match (number, size) {
        (Number::Float(_), 4) => &[DType::F32],
        (Number::Float(_), 8) => &[DType::F64],
        (Number::Int(_), 1) => &[DType::U8, DType::I8],
        (Number::Int(_), 2) => &[DType::U16, DType::I16],
        (Number::Int(_), 4) => &[DType::U32, DType::I32],
        (Number::Int(_), 8) => &[DType::U64, DType::I64],
        _ => &[],
    };
    types.iter().find_map(|dtype| dtype.encode(number))
}

impl Plan {
    /// What a buffer of the launch file holds at first; `None` for memory that nobody writes.
    pub fn contents(&self, buffer: usize) -> Option<&[u8]> {
        self.contents.get(buffer)?.as_deref()
    }

    /// The arguments of a launch, each by its value; buffers lie at `addresses`.
    pub fn arguments(&self, launch: usize, addresses: &[u64]) -> Vec<Vec<u8>> {
        let values = self.values[launch].iter();
        values
            .map(|value| match value {
                Value::Bytes(bytes) => bytes.clone(),
                Value::Address { buffer, offset } => (addresses[*buffer] + offset).to_le_bytes().to_vec(),
            })
            .collect()
    }

    /// Where the object lies, for messages.
    pub(crate) fn object_path(&self) -> &Path {
        &self.file.object
    }

    pub(crate) fn object_place(&self) -> &Place {
        &self.file.object_place
    }
}
