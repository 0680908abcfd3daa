//! A launch file and its object, checked against each other: what is left to go wrong is the kernel.

use crate::dtype::{DType, Number};
use crate::error::Error;
use crate::fill::{Fill, Pointer};
use crate::launch_file::{Argument, Launch, LaunchFile, scalar};
use crate::npy;
use crate::object_error::ARCHS;
use crate::object_file::{ObjectFile, argument, is_pointer, signature};
use crate::options::Options;
use crate::param_types::param_types;
use crate::toml_reader::nearest;
use rocmforge_code_object::{ArgMeta, KernelMeta};
use std::borrow::Cow;

/// A launch file that can run.
#[derive(Debug)]
pub struct Plan {
    /// The launch file.
    pub file: LaunchFile,
    /// Its objects, in the order of [`LaunchFile::objects`]; all run on one processor.
    pub objects: Vec<ObjectFile>,
    /// How to run it.
    pub options: Options,
    /// The object of each launch.
    pub(crate) object_of: Vec<usize>,
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
    /// Reads the objects and the files that fill buffers, none outside of the launch file's folder unless
    /// [`LaunchFile::allow_outside`], and compares every argument with what its object says of it.
    ///
    /// # Errors
    /// A file cannot be read or lies outside, an object cannot be executed, or a launch does not fit its kernel.
    pub fn new(file: LaunchFile) -> Result<Self, Error> {
        for path in file.buffers.iter().filter_map(|buffer| buffer.save.as_ref()) {
            file.folder().check_output(path)?;
        }
        let bytes = file
            .objects
            .iter()
            .map(|object| file.folder().read(&object.path, rocmforge_code_object::MAX_UNPACKED));
        let bytes = bytes.collect::<Result<Vec<_>, _>>()?;
        Self::with_objects(file, &bytes)
    }

    /// The same with the bytes of the only object at hand; the path in the launch file is for messages only.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_object(file: LaunchFile, bytes: &[u8]) -> Result<Self, Error> {
        Self::with_objects(file, &[bytes])
    }

    fn with_objects<B: AsRef<[u8]>>(file: LaunchFile, bytes: &[B]) -> Result<Self, Error> {
        let parse = |arch| {
            let objects = file.objects.iter().zip(bytes);
            let parsed = objects
                .map(|(object, bytes)| ObjectFile::parse(bytes.as_ref(), arch).map_err(Error::object(&object.path)));
            parsed.collect::<Result<Vec<_>, _>>()
        };
        // One card runs all of them: the first processor that every object has code for.
        let objects = match (file.arch, bytes.len()) {
            (Some(arch), _) => parse(Some(arch))?,
            (None, 1) => parse(None)?,
            (None, _) => match ARCHS.iter().find_map(|arch| parse(Some(arch)).ok()) {
                Some(objects) => objects,
                // Which of them is the odd one, or what is wrong with it.
                None => {
                    let first = parse(None)?;
                    let arch = first.first().map(|object| object.processor.as_str());
                    parse(arch)?
                }
            },
        };
        Self::of(file, objects)
    }

    /// The same for a device that is not simulated: of the object only what it says of itself is looked at.
    ///
    /// # Errors
    /// A file cannot be read, or a launch does not fit its kernel.
    pub fn for_device(file: LaunchFile, object: ObjectFile) -> Result<Self, Error> {
        Self::fitting(file, vec![object])
    }

    fn of(file: LaunchFile, objects: Vec<ObjectFile>) -> Result<Self, Error> {
        let plan = Self::fitting(file, objects)?;
        for (index, (object, named)) in plan.objects.iter().zip(&plan.file.objects).enumerate() {
            let all = plan.file.launches.iter().zip(&plan.object_of);
            let own = all.filter(|(_, of)| **of == index);
            let kernels = own.map(|(launch, _)| launch.kernel.as_str());
            object.check(kernels).map_err(Error::object(&named.path))?;
        }
        Ok(plan)
    }

    fn fitting(file: LaunchFile, objects: Vec<ObjectFile>) -> Result<Self, Error> {
        let contents = file.buffers.iter().map(|buffer| contents(&file, buffer));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let object_of = file.launches.iter().map(|launch| object_of(launch, &file, &objects));
        let object_of = object_of.collect::<Result<Vec<_>, _>>()?;
        let launches = file.launches.iter().zip(&object_of);
        let values = launches.map(|(launch, object)| values(launch, &file, *object, &objects[*object]));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            file,
            objects,
            options: Options::default(),
            object_of,
            contents,
            values,
        })
    }
}

/// The object that a launch's kernel is in.
fn object_of(launch: &Launch, file: &LaunchFile, objects: &[ObjectFile]) -> Result<usize, Error> {
    let having = |index: &usize| objects[*index].meta.kernel(&launch.kernel).is_some();
    let found: Vec<usize> = match launch.object {
        Some(index) => Some(index).into_iter().filter(having).collect(),
        None => (0..objects.len()).filter(having).collect(),
    };
    match found[..] {
        [only] => Ok(only),
        [] => {
            // A message names one object: the launch's, or the only one, or the first.
            let index = launch.object.unwrap_or(0);
            let names = objects.iter().flat_map(|object| &object.meta.kernels);
            let names: Vec<&str> = names.map(|kernel| kernel.name.as_str()).collect();
            Err(Error::NoSuchKernel {
                at: launch.place.clone(),
                kernel: launch.kernel.clone(),
                object: file.objects[index].path.clone(),
                nearest: nearest(&launch.kernel, names).map(str::to_owned),
                known: match launch.object {
                    Some(index) => objects[index].names(),
                    None => objects.iter().map(ObjectFile::names).collect::<Vec<_>>().join(", "),
                },
            })
        }
        _ => {
            let names = found.iter().filter_map(|index| file.objects[*index].name.as_deref());
            let names: Vec<&str> = names.collect();
            let problem = format!("is in several objects; say which with `object`: {}", names.join(", "));
            Err(Error::value(launch.place.clone(), &launch.kernel, problem))
        }
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

fn values(launch: &Launch, file: &LaunchFile, index: usize, object: &ObjectFile) -> Result<Vec<Value>, Error> {
    let kernel = object.meta.kernel(&launch.kernel).ok_or_else(|| Error::NoSuchKernel {
        at: launch.place.clone(),
        kernel: launch.kernel.clone(),
        object: file.objects[index].path.clone(),
        nearest: None,
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
    let types = param_types(kernel);
    let fits = kernel.explicit_args().zip(&launch.args).zip(types).enumerate();
    fits.map(|(index, ((meta, given), dtype))| {
        value(meta, given, dtype, file).map_err(|problem| Error::Argument {
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

fn value(meta: &ArgMeta, given: &Argument, dtype: Option<DType>, file: &LaunchFile) -> Result<Value, String> {
    let wanted = argument(meta, dtype);
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
        Argument::Number(number) if let Some(dtype) = dtype => scalar(dtype, *number).map(Value::Bytes),
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
    /// What a buffer of the launch file holds at first, with zeros where nobody writes; `None` if nobody writes any of it, or it
    /// holds addresses.
    pub fn contents(&self, buffer: usize) -> Option<&[u8]> {
        self.contents.get(buffer)?.as_deref()
    }

    /// The parts of a buffer that are written before it is used: the offset in bytes and the bytes of each. Buffers lie at
    /// `addresses`.
    pub(crate) fn parts(&self, index: usize, addresses: &[u64]) -> Vec<(usize, Cow<'_, [u8]>)> {
        let buffer = &self.file.buffers[index];
        let address = |pointer: &Pointer| match pointer {
            Pointer::Null => 0,
            Pointer::Buffer { index, offset } => addresses[*index] + offset,
        };
        let bytes: Cow<'_, [u8]> = match (&buffer.fill, self.contents(index)) {
            (Fill::Pointers(pointers), _) => pointers.iter().flat_map(|to| address(to).to_le_bytes()).collect(),
            (_, Some(bytes)) => Cow::Borrowed(bytes),
            (_, None) => return Vec::new(),
        };
        let Some(ranges) = &buffer.written else {
            return vec![(0, bytes)];
        };
        let size = buffer.dtype.size();
        let part = |range: &std::ops::Range<usize>| {
            let (start, end) = (range.start * size, range.end * size);
            let part = match &bytes {
                Cow::Borrowed(bytes) => Cow::Borrowed(bytes.get(start..end)?),
                Cow::Owned(bytes) => Cow::Owned(bytes.get(start..end)?.to_vec()),
            };
            Some((start, part))
        };
        let parts = ranges.iter().filter_map(part);
        parts.filter(|(_, bytes)| !bytes.is_empty()).collect()
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

    /// The processor that runs its kernels.
    pub(crate) fn processor(&self) -> &str {
        self.objects.first().map_or("", |object| &object.processor)
    }
}
