//! Settings in files, as orchestrators provide secrets.
//!
//! If `<VARIABLE>_FILE` is set, the file that it names holds the value of `<VARIABLE>`. An argument
//! or the variable itself takes precedence.

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, Command, Error, Parser};

/// Reads a program's settings from its arguments, its environment, and the files named there; ends
/// the program with a message if they cannot be read.
pub fn parse<P: Parser>() -> P {
    let arguments = std::env::args_os();
    try_parse(arguments, |name| std::env::var_os(name)).unwrap_or_else(|error| error.exit())
}

fn try_parse<P: Parser>(
    arguments: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<P, Error> {
    let mut failure = None;
    let mut command = with_files(P::command(), &variable, &mut failure);
    if let Some(message) = failure {
        return Err(command.error(ErrorKind::Io, message));
    }
    let mut matches = command.try_get_matches_from_mut(arguments)?;
    P::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

fn with_files(
    command: Command,
    variable: &dyn Fn(&str) -> Option<OsString>,
    failure: &mut Option<String>,
) -> Command {
    let mut failed = None;
    let command = command.mut_args(|arg| match content_for(&arg, variable) {
        Ok(None) => arg,
        // Leaked on purpose: settings live until the end of the program.
        Ok(Some(content)) => arg.default_value(&*content.leak()).hide_default_value(true),
        Err(message) => {
            failed = Some(message);
            arg
        }
    });
    *failure = failure.take().or(failed);
    command.mut_subcommands(|subcommand| with_files(subcommand, variable, failure))
}

/// The content of the file for this setting, if there is one.
fn content_for(
    arg: &Arg,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Option<String>, String> {
    let Some(name) = arg.get_env().and_then(|name| name.to_str()) else {
        return Ok(None);
    };
    if !arg.get_action().takes_values() {
        return Ok(None);
    }
    let name = format!("{name}_FILE");
    let Some(path) = variable(&name).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = Path::new(&path);
    match std::fs::read_to_string(path) {
        // Editors and `echo` end a file with a line end that is not part of the value.
        Ok(content) => Ok(Some(content.trim_end_matches(['\r', '\n']).to_owned())),
        Err(error) => Err(format!("{name}: cannot read {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use clap::Subcommand;

    use super::*;
    use crate::settings::DatabaseSettings;

    #[derive(Debug, Parser)]
    struct Program {
        #[arg(long, env = "WAYPOST_TEST_OF_FILES", default_value = "built in")]
        value: String,
        #[arg(long, env = "WAYPOST_TEST_OF_FILES_FLAG")]
        flag: bool,
        #[command(subcommand)]
        command: Option<Inner>,
    }

    #[derive(Debug, Subcommand)]
    enum Inner {
        Run {
            #[command(flatten)]
            database: DatabaseSettings,
        },
    }

    fn parse_with(file: &str, arguments: &[&str]) -> Result<Program, Error> {
        let arguments = [&["program"], arguments].concat();
        try_parse(arguments.into_iter().map(OsString::from), |name| {
            let known = [
                "WAYPOST_TEST_OF_FILES_FILE",
                "WAYPOST_TEST_OF_FILES_FLAG_FILE",
                "WAYPOST_DATABASE_CONNECTIONS_FILE",
            ];
            known.contains(&name).then(|| file.into())
        })
    }

    /// A file with this content that is removed when dropped.
    struct File(std::path::PathBuf);

    impl File {
        fn new(content: &str) -> Self {
            let name = format!("waypost-{}", uuid::Uuid::new_v4());
            let path = std::env::temp_dir().join(name);
            std::fs::write(&path, content).unwrap();
            Self(path)
        }

        fn path(&self) -> &str {
            self.0.to_str().unwrap()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            // A leftover file in the temporary folder does no harm.
            let _ = std::fs::remove_file(&self.0);
        }
    }

    #[test]
    fn a_file_gives_the_value_without_its_last_line_end() {
        let file = File::new("from the file\n");
        let program = parse_with(file.path(), &[]).unwrap();
        assert_eq!(program.value, "from the file");
        assert!(!program.flag, "flags have no content");
    }

    #[test]
    fn an_argument_goes_before_the_file() {
        let file = File::new("from the file");
        let program = parse_with(file.path(), &["--value", "given"]).unwrap();
        assert_eq!(program.value, "given");
        assert_eq!(parse_with("", &[]).unwrap().value, "built in");
    }

    #[test]
    fn settings_of_subcommands_come_from_files_too() {
        let file = File::new("7\n");
        let program = parse_with(file.path(), &["run"]).unwrap();
        let Some(Inner::Run { database }) = program.command else {
            panic!("no subcommand");
        };
        assert_eq!(database.connections, 7);
    }

    #[test]
    fn help_does_not_show_what_is_in_a_file() {
        let file = File::new("hunter2");
        let help = parse_with(file.path(), &["--help"])
            .unwrap_err()
            .to_string();
        assert!(
            help.contains("--value") && !help.contains("hunter2"),
            "{help}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_read_is_reported_with_its_setting() {
        let error = parse_with("/no/such/file", &[]).unwrap_err().to_string();
        assert!(
            error.contains("_FILE: cannot read /no/such/file"),
            "{error}"
        );
    }
}
