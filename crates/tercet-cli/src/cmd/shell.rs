//! Shell completions and manual pages.

use std::path::PathBuf;

use clap::Subcommand;

use crate::args::NoJsonArgs;
use crate::failure::{Failure, Outcome};
use crate::persona::Persona;
use crate::ui::Ui;

/// Verbs about the command itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
        #[command(flatten)]
        json: NoJsonArgs,
    },
    /// Print the manual page, or write all pages to a directory
    Man {
        /// Write one page per verb to this directory
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
        #[command(flatten)]
        json: NoJsonArgs,
    },
}

impl Verb {
    pub(crate) fn run(&self, persona: Persona, out: &mut Ui) -> Result<Outcome, Failure> {
        out.must_not_be_json(match self {
            Self::Completions { .. } => "completions",
            Self::Man { .. } => "man",
        })?;
        let mut command = persona.command();
        match self {
            Self::Completions { shell, .. } => {
                let mut script = Vec::new();
                clap_complete::generate(*shell, &mut command, persona.name(), &mut script);
                out.bytes()?.write_all(&script).map_err(|error| Failure::output(&error))?;
            }
            Self::Man { dir: Some(dir), .. } => {
                let refused = |error| Failure::io(&format!("cannot write to `{}`", dir.display()), &error);
                std::fs::create_dir_all(dir).map_err(refused)?;
                clap_mangen::generate_to(command, dir).map_err(refused)?;
            }
            Self::Man { dir: None, .. } => {
                let mut page = Vec::new();
                let render = clap_mangen::Man::new(command).render(&mut page);
                render.map_err(|error| Failure::io("cannot render the manual page", &error))?;
                out.bytes()?.write_all(&page).map_err(|error| Failure::output(&error))?;
            }
        }
        Ok(Outcome::Done)
    }
}
