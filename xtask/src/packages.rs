//! Packages: what a registry gets of each published crate, and the program installed from these packages alone.

use crate::{cargo, workspace_root};
use rocmforge_fetch_models::{self as model, Model};
use rocmforge_gpu_test::{Outcome, say};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The largest package that crates.io takes.
const LARGEST: u64 = 10 << 20;
/// The crate of the program `rocmforge`.
const PROGRAM: &str = "rocmforge-cli";
/// The crate that has the packs of kernels, and their folder in it.
const KERNELS: (&str, &str) = ("rocmforge-kernels", "kernels/prebuilt");
const PACK: &str = ".pack";

/// Any error.
type Failure = Box<dyn std::error::Error>;

/// `cargo xtask packages`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Unpacks the packages into this folder outside the workspace, installs the program from them into DIR/bin, and computes with it on the CPU and on the
    /// simulated card. Nothing but the model is fetched. It takes minutes.
    #[arg(long, value_name = "DIR")]
    install: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum PackagesError {
    #[error("{0} ended with {1}")]
    Ended(String, std::process::ExitStatus),
    #[error("cargo made no package of {0}")]
    Absent(&'static str),
    #[error("{name} has {bytes} bytes; crates.io takes {LARGEST} at most")]
    TooLarge { name: String, bytes: u64 },
    #[error("the package of the kernels lacks {0}")]
    NoPack(String),
    #[error("{0} lies in the workspace: what is not in the packages would be found there")]
    Inside(PathBuf),
    #[error("the program answered with {0:?}, without \"Paris\"")]
    Answer(String),
}

/// A package.
struct Package {
    /// Name and version, as in `rocmforge-cli-0.1.0`.
    name: String,
    file: PathBuf,
    bytes: u64,
}

/// Packages every published crate, and checks their sizes and the packs of kernels.
pub(crate) fn run(args: Args) -> Outcome {
    if let Some(folder) = &args.install {
        std::fs::create_dir_all(folder)?;
        if folder.canonicalize()?.starts_with(workspace_root().canonicalize()?) {
            return Err(PackagesError::Inside(folder.clone()).into());
        }
    }
    let target = tempfile::tempdir()?;
    let words = "publish --workspace --dry-run --no-verify --allow-dirty --quiet --target-dir";
    succeed(cargo().args(words.split(' ')).arg(target.path()))?;
    let mut packages = Vec::new();
    find(&target.path().join("package"), &mut packages)?;
    packages.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    packages.dedup_by(|a, b| a.name == b.name);
    for package in &packages {
        say!("{:<32} {:>9} bytes", package.name, package.bytes);
    }
    fit(&packages)?;
    let packs = has_packs(of_crate(&packages, KERNELS.0)?)?;
    say!(
        "{} packages, {packs} packs of kernels, each package below {LARGEST} bytes",
        packages.len()
    );
    match &args.install {
        Some(folder) => install(&packages, &folder.canonicalize()?),
        None => Ok(()),
    }
}

/// Runs a command whose failure is ours.
fn succeed(command: &mut Command) -> Outcome {
    let status = command.status()?;
    match status.success() {
        true => Ok(()),
        false => Err(PackagesError::Ended(format!("{command:?}"), status).into()),
    }
}

/// What a command prints.
fn printed(command: &mut Command) -> Result<String, Failure> {
    let output = command.stderr(std::process::Stdio::inherit()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(PackagesError::Ended(format!("{command:?}"), output.status).into()),
    }
}

/// The packages below a folder: where cargo puts them differs between versions, and it may keep a second copy.
fn find(folder: &Path, packages: &mut Vec<Package>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.path();
        if file.is_dir() {
            find(&file, packages)?;
        } else if let Some(name) = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".crate")) {
            let (name, bytes) = (name.to_owned(), file.metadata()?.len());
            packages.push(Package { name, file, bytes });
        }
    }
    Ok(())
}

/// Refuses a package that is too large.
fn fit(packages: &[Package]) -> Result<(), PackagesError> {
    match packages.iter().find(|package| package.bytes > LARGEST) {
        None => Ok(()),
        Some(Package { name, bytes, .. }) => Err(PackagesError::TooLarge {
            name: name.clone(),
            bytes: *bytes,
        }),
    }
}

/// The package of a crate. The versions of all crates are the same.
fn of_crate<'a>(packages: &'a [Package], name: &'static str) -> Result<&'a Package, PackagesError> {
    let whole = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
    let found = packages.iter().find(|package| package.name == whole);
    found.ok_or(PackagesError::Absent(name))
}

/// How many packs of kernels the package has; each of the workspace's must be there.
fn has_packs(package: &Package) -> Result<usize, Failure> {
    let listing = printed(Command::new("tar").arg("-tzf").arg(&package.file))?;
    let listing: BTreeSet<&str> = listing.lines().collect();
    let packs = packs()?;
    for pack in &packs {
        if !listing.contains(&*format!("{}/{}/{pack}", package.name, KERNELS.1)) {
            return Err(PackagesError::NoPack(pack.clone()).into());
        }
    }
    match packs.len() {
        0 => Err(PackagesError::NoPack(format!("*{PACK}")).into()),
        packs => Ok(packs),
    }
}

/// The packs of the workspace: `gfx1100/copy.pack`.
fn packs() -> std::io::Result<Vec<String>> {
    let mut packs = Vec::new();
    for target in std::fs::read_dir(workspace_root().join(KERNELS.1))? {
        let target = target?;
        if !target.file_type()?.is_dir() {
            continue;
        }
        for pack in std::fs::read_dir(target.path())? {
            let name = pack?.file_name().to_string_lossy().into_owned();
            if name.ends_with(PACK) {
                packs.push(format!("{}/{name}", target.file_name().to_string_lossy()));
            }
        }
    }
    packs.sort();
    Ok(packs)
}

/// Installs the program from the packages, and computes with it.
fn install(packages: &[Package], folder: &Path) -> Outcome {
    let sources = folder.join("sources");
    std::fs::create_dir_all(&sources)?;
    for package in packages {
        let unpacked = sources.join(&package.name);
        if unpacked.exists() {
            std::fs::remove_dir_all(&unpacked)?;
        }
        succeed(
            Command::new("tar")
                .arg("-xzf")
                .arg(&package.file)
                .arg("-C")
                .arg(&sources),
        )?;
    }
    let unpacked = sources.join(&of_crate(packages, PROGRAM)?.name);
    let lock = unpacked.join("Cargo.lock");
    let (locked, ours) = without_registry(&std::fs::read_to_string(&lock)?);
    std::fs::write(lock, locked)?;
    // The registry does not have our crates yet: the unpacked ones stand for what it will have.
    let mut patches = String::from("[patch.crates-io]\n");
    for name in ours.iter().filter(|name| *name != PROGRAM) {
        let path = sources.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
        writeln!(patches, "{name} = {{ path = {:?} }}", path.display().to_string())?;
    }
    let config = folder.join("patches.toml");
    std::fs::write(&config, patches)?;
    let words = "install --locked --offline --force --no-track --config";
    let mut command = cargo();
    command.current_dir(folder).args(words.split(' ')).arg(&config);
    command.arg("--path").arg(&unpacked);
    command
        .arg("--root")
        .arg(folder)
        .arg("--target-dir")
        .arg(folder.join("target"));
    succeed(&mut command)?;

    let program = folder.join("bin/rocmforge");
    let (file, _) = model::ensure_file(Model::Smollm2)?;
    let rocmforge = || {
        let mut command = Command::new(&program);
        command.env("ROCMFORGE_STORE", folder.join("store")).current_dir(folder);
        command
    };
    succeed(rocmforge().args(["pull", "--force"]).arg(&file))?;
    let models = printed(rocmforge().arg("list"))?;
    say!("{}", models.trim_end());
    let name = file.file_stem().unwrap_or_default();
    for (device, tokens) in [("cpu", "6"), ("sim", "1")] {
        let mut command = rocmforge();
        command.args([
            "run", "--device", device, "--ctx", "64", "--temp", "0", "--tokens", tokens, "-m",
        ]);
        let answer = printed(command.arg(name).arg("The capital of France is"))?;
        say!("{device}: {}", answer.trim());
        if !answer.contains("Paris") {
            return Err(PackagesError::Answer(answer).into());
        }
    }
    Ok(())
}

/// The lock file of a package with our crates as folders, which have neither source nor checksum, and the names of our crates.
fn without_registry(lock: &str) -> (String, Vec<String>) {
    let (mut text, mut ours, mut is_ours) = (String::new(), Vec::new(), false);
    for line in lock.lines() {
        let value = |key: &str| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"');
        if let Some(name) = value("name") {
            is_ours = name == "rocmforge" || name.starts_with("rocmforge-");
            ours.extend(is_ours.then(|| name.to_owned()));
        }
        if !(is_ours && (value("source").is_some() || value("checksum").is_some())) {
            text.push_str(line);
            text.push('\n');
        }
    }
    (text, ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(folder: &Path, names: &[&str]) -> Package {
        let version = env!("CARGO_PKG_VERSION");
        let name = format!("{}-{version}", KERNELS.0);
        let prebuilt = folder.join(&name).join(KERNELS.1);
        for name in names {
            std::fs::create_dir_all(prebuilt.join(name).parent().unwrap()).unwrap();
            std::fs::write(prebuilt.join(name), "").unwrap();
        }
        let file = folder.join("package").join(format!("{name}.crate"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        succeed(
            Command::new("tar")
                .current_dir(folder)
                .arg("-czf")
                .arg(&file)
                .arg(&name),
        )
        .unwrap();
        let mut found = Vec::new();
        find(folder, &mut found).unwrap();
        found.pop().unwrap()
    }

    #[test]
    fn a_pack_that_is_not_in_the_package_is_named() {
        let names = packs().unwrap();
        assert!(names.len() > 100, "{names:?}");
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (whole, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let found = package(whole.path(), &names);
        assert_eq!(has_packs(&found).unwrap(), names.len());
        assert!(of_crate(&[found], KERNELS.0).is_ok());
        let error = has_packs(&package(part.path(), &names[1..])).unwrap_err().to_string();
        assert!(error.contains(names[0]), "{error}");
    }

    #[test]
    fn a_package_that_is_too_large_is_refused() {
        let sized = |bytes| Package {
            name: "a-0.1.0".to_owned(),
            file: PathBuf::new(),
            bytes,
        };
        assert!(fit(&[sized(1), sized(LARGEST)]).is_ok());
        let error = fit(&[sized(1), sized(LARGEST + 1)]).unwrap_err().to_string();
        assert!(error.contains("a-0.1.0 has 10485761 bytes"), "{error}");
    }

    #[test]
    fn our_crates_lose_their_registry_in_a_lock_file() {
        let package = |name: &str, rest: &str| format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\n{rest}");
        let registry = "source = \"registry+x\"\nchecksum = \"00\"\n";
        let lock = ["a", "rocmforge", "rocmforge-isa"]
            .map(|name| package(name, registry))
            .concat();
        let expected = package("a", registry) + &package("rocmforge", "") + &package("rocmforge-isa", "");
        let ours = vec!["rocmforge".to_owned(), "rocmforge-isa".to_owned()];
        assert_eq!(without_registry(&lock), (expected, ours));
    }

    #[test]
    fn a_folder_of_the_workspace_is_refused() {
        let install = Some(workspace_root().join("xtask"));
        let error = run(Args { install }).unwrap_err().to_string();
        assert!(error.contains("lies in the workspace"), "{error}");
    }
}
