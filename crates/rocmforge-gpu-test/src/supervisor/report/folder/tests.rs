//! Folders that hold more than reports, and lists that were changed.

use super::*;
use std::os::unix::fs::symlink;

/// A run that writes `report.json` and one log.
fn run(path: &Path) -> Result<(), FolderError> {
    let planned = ["report.json", "logs/a.log", "logs/never.log"].map(str::to_owned);
    let mut folder = ReportFolder::claim(path, &["logs"], planned)?;
    fs::write(path.join("logs/a.log"), "said").unwrap();
    folder.write("report.json", b"{}")?;
    folder.finish()
}

fn listed(path: &Path) -> Vec<String> {
    let list: List = serde_json::from_slice(&fs::read(path.join(LIST)).unwrap()).unwrap();
    list.files.into_iter().collect()
}

fn is(path: &Path, text: &str) {
    assert_eq!(fs::read_to_string(path).unwrap(), text, "{}", path.display());
}

#[test]
fn a_new_run_deletes_what_the_run_before_wrote_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::create_dir(path.join("buffers")).unwrap();
    for own in ["notes.txt", "buffers/thesis.txt"] {
        fs::write(path.join(own), "mine").unwrap();
    }
    run(path).unwrap();
    assert_eq!(
        listed(path),
        ["logs/a.log", "report.json"],
        "what was never written is not listed"
    );
    fs::write(path.join("logs/mine.txt"), "mine").unwrap();
    fs::write(path.join("logs/never.log"), "mine").unwrap();

    // The log of the next run has another name.
    let folder = ReportFolder::claim(path, &["logs"], ["report.json".to_owned()]).unwrap();
    assert!(!path.join("logs/a.log").exists() && !path.join("report.json").exists());
    for own in ["notes.txt", "buffers/thesis.txt", "logs/mine.txt", "logs/never.log"] {
        is(&path.join(own), "mine");
    }
    folder.finish().unwrap();
    for own in ["logs/mine.txt", "logs/never.log"] {
        fs::remove_file(path.join(own)).unwrap();
    }
    ReportFolder::claim(path, &[], []).unwrap();
    assert!(!path.join("logs").exists(), "a folder of its own that became empty");
    assert!(path.join("buffers").exists());
}

#[test]
fn what_no_run_wrote_is_not_overwritten() {
    for name in ["report.json", "logs/a.log", "logs"] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join(name);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "mine").unwrap();
        let error = run(directory.path()).unwrap_err();
        assert!(
            matches!(&error, FolderError::NotOurs { path } if *path == place),
            "{name}: {error}"
        );
        is(&place, "mine");
        assert!(!directory.path().join(LIST).exists());
    }
    // A link is as good as a file, and a folder behind one is not written to.
    let (directory, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(elsewhere.path(), directory.path().join("logs")).unwrap();
    assert!(matches!(run(directory.path()), Err(FolderError::NotOurs { .. })));
    fs::remove_file(directory.path().join("logs")).unwrap();
    symlink(elsewhere.path().join("x"), directory.path().join("report.json")).unwrap();
    assert!(matches!(run(directory.path()), Err(FolderError::NotOurs { .. })));
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_run_that_was_killed_leaves_a_list_of_what_it_may_have_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let folder = ReportFolder::claim(path, &["logs"], ["logs/a.log".to_owned()]).unwrap();
    fs::write(path.join("logs/a.log"), "said").unwrap();
    drop(folder);
    run(path).unwrap();
    is(&path.join("logs/a.log"), "said");
}

#[test]
fn a_list_that_names_what_lies_elsewhere_deletes_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let (path, precious) = (outer.path().join("reports"), outer.path().join("precious"));
    fs::write(&precious, "mine").unwrap();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("kept"), "mine").unwrap();
    let absolute = precious.to_str().unwrap();
    for outside in ["../precious", absolute, "", ".", "logs/../../precious"] {
        let list = serde_json::json!({ "version": 1, "files": ["kept", outside] });
        fs::write(path.join(LIST), list.to_string()).unwrap();
        let error = run(&path).unwrap_err();
        assert!(matches!(error, FolderError::List { .. }), "{outside:?}: {error}");
        assert!(error.to_string().contains(LIST), "{error}");
        is(&path.join("kept"), "mine");
    }
    is(&precious, "mine");
    for text in ["", "[]", "{\"version\":2,\"files\":[]}", "{\"version\":1,\"files\":7}"] {
        fs::write(path.join(LIST), text).unwrap();
        assert!(matches!(run(&path), Err(FolderError::List { .. })), "{text}");
    }
    let long = fs::File::create(path.join(LIST)).unwrap();
    long.set_len(LONGEST + 1).unwrap();
    let error = run(&path).unwrap_err().to_string();
    assert!(error.contains("more than 67108864 bytes"), "{error}");
}

#[test]
fn links_folders_and_pipes_in_the_place_of_listed_files_stay() {
    let outer = tempfile::tempdir().unwrap();
    let (path, elsewhere) = (outer.path().join("reports"), outer.path().join("elsewhere"));
    for folder in ["reports/folder", "elsewhere"] {
        fs::create_dir_all(outer.path().join(folder)).unwrap();
    }
    fs::write(elsewhere.join("a.log"), "mine").unwrap();
    symlink(&elsewhere, path.join("logs")).unwrap();
    symlink(elsewhere.join("a.log"), path.join("link")).unwrap();
    let fifo = |path: PathBuf| {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    fifo(path.join("pipe"));
    let files = ["logs/a.log", "link", "folder", "pipe", "gone", "folder/gone"];
    let list = serde_json::json!({ "version": 1, "files": files, "folders": ["logs", "link"] });
    fs::write(path.join(LIST), list.to_string()).unwrap();
    ReportFolder::claim(&path, &[], []).unwrap().finish().unwrap();
    is(&elsewhere.join("a.log"), "mine");
    for stays in ["logs", "link", "folder", "pipe"] {
        assert!(path.join(stays).symlink_metadata().is_ok(), "{stays}");
    }
    // A list that is no file itself is not waited for.
    fs::remove_file(path.join(LIST)).unwrap();
    fifo(path.join(LIST));
    let error = run(&path).unwrap_err().to_string();
    assert!(error.contains("it is a FIFO"), "{error}");
}

#[test]
fn a_folder_for_files_that_nobody_knows_before_must_have_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let folder = ReportFolder::claim(path, &[], []).unwrap();
    folder.require_empty().unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    fs::write(path.join("sub/encode.txt"), "said").unwrap();
    folder.finish_with_all().unwrap();
    assert_eq!(listed(path), ["sub/encode.txt"]);
    let again = ReportFolder::claim(path, &[], []).unwrap();
    again.require_empty().unwrap();
    fs::write(path.join("mine"), "mine").unwrap();
    assert!(matches!(again.require_empty(), Err(FolderError::NotOurs { .. })));
}

#[test]
fn a_folder_that_a_run_writes_to_is_refused_until_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let claim = || ReportFolder::claim(folder.path(), &[], ["a.json".to_owned()]);
    let mut first = claim().unwrap();
    first.write("a.json", b"{}").unwrap();
    let refused = claim().unwrap_err();
    assert!(matches!(refused, FolderError::InUse { .. }), "{refused}");
    assert!(folder.path().join("a.json").exists(), "the refused run changed nothing");
    first.finish().unwrap();
    claim().unwrap();
}
