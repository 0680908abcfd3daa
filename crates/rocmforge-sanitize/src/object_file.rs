//! The code object of a launch file.

use crate::dtype::DType;
use crate::error::Error;
use crate::files;
use crate::object_error::{ARCHS, ObjectError};
use crate::param_types::param_types;
use rocmforge_amdgcn::{LoadError, Program};
use rocmforge_code_object::{ArgKind, ArgMeta, Bundle, CodeObject, KernelMeta, MAX_UNPACKED};
use std::path::Path;

/// A code object that can be executed.
#[derive(Debug)]
pub struct ObjectFile {
    /// The ELF file.
    pub elf: Vec<u8>,
    /// What it says of itself.
    pub meta: CodeObject,
    /// The processor that it runs on: its own, or one of the family of a generic target.
    pub processor: String,
}

impl ObjectFile {
    /// Reads and understands a file, wherever it is.
    ///
    /// # Errors
    /// It cannot be read, or as [`Self::parse`].
    pub fn read(path: &Path, arch: Option<&str>) -> Result<Self, Error> {
        let bytes = files::read(path, MAX_UNPACKED)?;
        Self::parse(&bytes, arch).map_err(Error::object(path))
    }

    /// Reads a code object, or takes the one for a processor out of a bundle or a host program: for `arch`, or else for the
    /// first of gfx1100 and gfx1201 that it has code for.
    ///
    /// # Errors
    /// [`ObjectError`]; nothing in `bytes` makes this panic.
    pub fn parse(bytes: &[u8], arch: Option<&str>) -> Result<Self, ObjectError> {
        let wanted = arch.as_slice();
        let wanted = if wanted.is_empty() { ARCHS } else { wanted };
        let mut bundles = Bundle::of_host_program(bytes)?;
        bundles.extend(Bundle::parse(bytes)?);
        let elf = if bundles.is_empty() {
            bytes.to_vec()
        } else {
            let fits = |arch: &&str| bundles.iter().find_map(|bundle| bundle.for_processor(arch));
            let found = wanted.iter().find_map(fits).ok_or_else(|| ObjectError::NoArch {
                found: processors(&bundles),
                wanted: wanted.join(" or "),
            })?;
            found.bytes.to_vec()
        };
        let meta = CodeObject::parse(&elf)?;
        let Some(processor) = wanted.iter().find(|arch| meta.target.runs_on(arch)) else {
            return Err(ObjectError::NoArch {
                found: meta.target.arch,
                wanted: wanted.join(" or "),
            });
        };
        let processor = (*processor).to_owned();
        Ok(Self { elf, meta, processor })
    }

    /// Whether the simulator executes these kernels of it. Kernels that it does not have are passed over.
    ///
    /// # Errors
    /// The object is damaged, or what the first of the kernels contains or needs that is not modelled.
    pub fn check<'a>(&self, mut kernels: impl Iterator<Item = &'a str>) -> Result<(), ObjectError> {
        let program = self.program()?;
        let refused = kernels.find_map(|kernel| Some((kernel, program.refusal(kernel)?)));
        refused.map_or(Ok(()), |(kernel, why)| {
            Err(ObjectError::Kernel {
                kernel: kernel.to_owned(),
                why: why.to_string(),
            })
        })
    }

    fn program(&self) -> Result<Program, LoadError> {
        Program::load(&self.elf, rocmforge_amdgcn::DEVICE_BASE)
    }

    /// Its kernels' names, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.meta.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        }
    }
}

/// The processors that bundles have code for, to be printed.
fn processors(bundles: &[Bundle<'_>]) -> String {
    let entries = bundles.iter().flat_map(Bundle::entries);
    let found: Vec<String> = entries.map(|entry| entry.arch().to_owned()).collect();
    if found.is_empty() {
        return "no AMD GPU at all".to_owned();
    }
    found.join(", ")
}

/// `name(pointer x, pointer y, 4 B n)`; with `i32` for `4 B` where the type is known.
pub(crate) fn signature(kernel: &KernelMeta) -> String {
    let arguments = kernel.explicit_args().zip(param_types(kernel));
    let arguments: Vec<String> = arguments.map(|(arg, dtype)| argument(arg, dtype)).collect();
    format!("{}({})", kernel.name, arguments.join(", "))
}

/// `pointer x`, `4 B n`, `i32 n`
pub(crate) fn argument(arg: &ArgMeta, dtype: Option<DType>) -> String {
    let what = match dtype {
        _ if is_pointer(arg) => "pointer".to_owned(),
        Some(dtype) => dtype.to_string(),
        None => format!("{} B", arg.size),
    };
    match &arg.name {
        Some(name) => format!("{what} {name}"),
        None => what,
    }
}

pub(crate) fn is_pointer(arg: &ArgMeta) -> bool {
    arg.kind == ArgKind::GlobalPointer
}

/// `1 kernel`, `2 kernels`, `2 launches`
pub(crate) fn plural(n: usize, one: &str) -> String {
    match (n, one.ends_with("ch")) {
        (1, _) => format!("1 {one}"),
        (_, true) => format!("{n} {one}es"),
        (_, false) => format!("{n} {one}s"),
    }
}

/// The kernels of an object as a page, one to a paragraph.
pub fn describe(object: &ObjectFile) -> String {
    let kernels = plural(object.meta.kernels.len(), "kernel");
    let program = object.program();
    let mut page = format!("{}, {kernels}\n", object.meta.target.arch);
    for kernel in &object.meta.kernels {
        page.push_str(&format!("\n{}\n", signature(kernel)));
        let group = match kernel.required_workgroup_size {
            Some([x, y, z]) => format!("groups of exactly {x} x {y} x {z}"),
            None => format!("groups of up to {}", kernel.max_workgroup_size),
        };
        page.push_str(&format!(
            "  {group}, {} vector and {} scalar registers, {} B of LDS, {} B of private memory\n",
            kernel.vgpr_count, kernel.sgpr_count, kernel.lds_size, kernel.private_size
        ));
        if let Some(why) = program.as_ref().ok().and_then(|program| program.refusal(&kernel.name)) {
            page.push_str(&format!("  cannot run: {why}\n"));
        }
    }
    page
}

/// A launch file for every kernel of an object that can run, to be filled in.
///
/// # Errors
/// As [`ObjectFile::check`], where none can.
pub fn template(object: &ObjectFile, path: &Path) -> Result<String, ObjectError> {
    let program = object.program()?;
    if program.kernels().is_empty() {
        object.check(object.meta.kernels.iter().map(|kernel| kernel.name.as_str()))?;
    }
    let mut page = format!("object = {}\nseeds = 16\n", quoted(&path.display().to_string()));
    for kernel in &object.meta.kernels {
        if let Some(why) = program.refusal(&kernel.name) {
            let why = why.to_string().replace(char::is_control, " ");
            page.push_str(&format!(
                "\n# {} cannot run: {why}\n",
                kernel.name.replace(char::is_control, " ")
            ));
            continue;
        }
        let block = kernel
            .required_workgroup_size
            .unwrap_or([kernel.max_workgroup_size.min(256), 1, 1]);
        page.push_str(&format!(
            "\n[[launch]]\nkernel = {}\ngrid = [1, 1, 1]\nblock = {block:?}\nargs = [\n",
            quoted(&kernel.name)
        ));
        for (arg, dtype) in kernel.explicit_args().zip(param_types(kernel)) {
            let example = match arg.size {
                _ if is_pointer(arg) => "\"f32[256] iota\"".to_owned(),
                _ if dtype.is_some_and(DType::is_float) => "1.0".to_owned(),
                // The number of elements above, which a kernel most likely gets as an argument. One that gets 0 does nothing, which passes.
                4 | 8 => "256".to_owned(),
                1 | 2 => "0".to_owned(),
                size => format!("[{}]", vec!["{ u8 = 0 }"; size as usize].join(", ")),
            };
            let comment = argument(arg, dtype).replace(char::is_control, " ");
            page.push_str(&format!("    {example}, # {comment}\n"));
        }
        page.push_str("]\n");
    }
    Ok(page)
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
