//! The card's figures over a stand-in for the management library, compiled from `nvml.c`.

use crate::fake::{Fake, compile};
use rocmforge_memory::{Bytes, Readings};
use rocmforge_nvidia::{LoadError, NvmlReadings};

fn library(defines: &[&str]) -> Fake {
    compile("nvml.c", "libnvidia-ml.so.1", defines)
}

fn open(library: &Fake, pci: &str) -> Result<Option<NvmlReadings>, LoadError> {
    NvmlReadings::open_from(library.path.to_str().unwrap(), pci)
}

#[test]
fn the_card_of_an_address_is_read() {
    let library = library(&[]);
    let readings = open(&library, "0000:03:00.0").unwrap().expect("it is there");
    let now = readings.read();
    assert_eq!((now.total, now.used), (Some(Bytes::gib(24)), Some(Bytes::gib(1))));
    assert_eq!((now.displays, now.hip_free), (0, None));
    assert!(open(&library, "0000:04:00.0").unwrap().is_none(), "another card");
    assert!(open(&library, "0000:03:00.0\0").unwrap().is_none(), "no address");
}

#[test]
fn a_library_that_does_not_start_or_lacks_a_function_is_distinguished() {
    assert!(open(&library(&["DEAD=9"]), "0000:03:00.0").unwrap().is_none());
    match open(&library(&["nvmlDeviceGetMemoryInfo=other"]), "0000:03:00.0") {
        Err(LoadError::MissingFunctions { functions, .. }) => assert_eq!(functions, ["nvmlDeviceGetMemoryInfo"]),
        other => panic!("{other:?}"),
    }
    match NvmlReadings::open_from("libnvidia-ml-of-nobody.so.1", "0000:03:00.0") {
        Err(LoadError::NotFound { library, .. }) => assert_eq!(library, "libnvidia-ml-of-nobody.so.1"),
        other => panic!("{other:?}"),
    }
}
