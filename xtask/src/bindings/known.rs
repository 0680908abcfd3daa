//! Where our bindings and a version of the headers are known to differ, one by one, each with its reason. What is not listed
//! here and differs fails the check; what is listed and does not differ fails it too.

/// Names that HIP got later than the oldest version we load: name, first version that declares it.
const SINCE: &[(&str, (u32, u32))] = &[
    ("hipGetDevicePropertiesR0600", (6, 0)),
    ("hipExtGetLastError", (6, 0)),
    ("hipStreamGetDevice", (5, 7)),
    ("hipDeviceSetLimit", (5, 4)),
    ("hipLimitStackSize", (5, 4)),
    ("hipDrvGetErrorName", (5, 4)),
    ("hipPointerSetAttribute", (5, 7)),
    ("hipModuleLaunchCooperativeKernel", (5, 7)),
    ("hipMemoryTypeUnregistered", (6, 0)),
    ("hipMemoryTypeManaged", (5, 4)),
    ("hipErrorInvalidChannelDescriptor", (7, 0)),
    ("hipErrorInvalidTexture", (7, 0)),
];

const RENUMBERED: &str = "HIP 6.0 gave hipMemoryType new values; ours are those of 6.0 and later";
/// Names whose value or signature differs: name, first and last major version of the headers, reason.
const DIFFERENT: &[(&str, (u32, u32), &str)] = &[
    ("hipMemoryTypeHost", (0, 5), RENUMBERED),
    ("hipMemoryTypeDevice", (0, 5), RENUMBERED),
    ("hipMemoryTypeManaged", (0, 5), RENUMBERED),
    ("hipMemoryTypeArray", (0, 5), RENUMBERED),
    ("hipMemoryTypeUnified", (0, 5), RENUMBERED),
];

const RENAMED: &str =
    "the header makes this name mean the R0600 one; the exported symbol keeps the old struct, as ours does";

/// Functions whose header cannot be asked: name, first major version, reason.
const INCOMPARABLE: &[(&str, u32, &str)] = &[("hipGetDeviceProperties", 6, RENAMED)];

/// Fields that had another name: struct, our name, last major version with the other name, the other name.
const FIELDS: &[(&str, &str, u32, &str)] = &[("hipPointerAttribute_t", "type", 5, "memoryType")];

/// Why headers of `version` may lack `name`, if they may.
pub(super) fn absent(name: &str, version: (u32, u32)) -> Option<String> {
    let (_, since) = SINCE.iter().find(|(known, since)| *known == name && version < *since)?;
    Some(format!("not in this header: HIP has it since {}.{}", since.0, since.1))
}

/// Why `name` differs in headers of `version`, if it is to.
pub(super) fn different(name: &str, version: (u32, u32)) -> Option<&'static str> {
    let applies =
        |(known, (first, last), _): &&(&str, (u32, u32), &str)| *known == name && (*first..=*last).contains(&version.0);
    DIFFERENT.iter().find(applies).map(|(_, _, reason)| *reason)
}

/// Why headers of `version` cannot be asked about the function `name`, if they cannot.
pub(super) fn incomparable(name: &str, version: (u32, u32)) -> Option<&'static str> {
    let applies = |(known, first, _): &&(&str, u32, &'static str)| *known == name && version.0 >= *first;
    INCOMPARABLE.iter().find(applies).map(|(_, _, reason)| *reason)
}

/// A field's name in headers of `version`.
pub(super) fn field(layout: &str, name: &'static str, version: (u32, u32)) -> &'static str {
    let applies = |known: &&(&str, &str, u32, &str)| (known.0, known.1) == (layout, name) && version.0 <= known.2;
    FIELDS.iter().find(applies).map_or(name, |known| known.3)
}
