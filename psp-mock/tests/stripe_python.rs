//! Stripe's official Python client against the mock: the proof that the wire format is Stripe's and not only ours.
//!
//! `STRIPE_PYTHON` names a Python that has the `stripe` package; without it a virtual environment is made once under the target
//! directory, which needs the package index. When neither works the test fails and says so: it never skips.

use psp_mock::{Config, Mock};
use std::path::PathBuf;
use std::process::Output;
use tokio::process::Command;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stripe_client.py");

#[tokio::test]
async fn stripes_python_client_works_with_only_its_base_address_changed() {
    let python = match std::env::var_os("STRIPE_PYTHON") {
        Some(python) => PathBuf::from(python),
        None => python_with_stripe().await,
    };
    let mock = Mock::start(Config::default()).await.expect("mock starts");
    let output = run(Command::new(&python).arg(SCRIPT).arg(mock.url())).await;
    mock.stop().await;
    assert!(output.status.success(), "{} failed:\n{}", python.display(), text(&output));
}

/// Makes the virtual environment, or finds it made by an earlier run.
async fn python_with_stripe() -> PathBuf {
    let home = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("stripe-python");
    let python = home.join("bin/python");
    if python.exists() && run(Command::new(&python).args(["-c", "import stripe"])).await.status.success() {
        return python;
    }
    let help = "set STRIPE_PYTHON to a python that has the `stripe` package";
    let made = run(Command::new("python3").args(["-m", "venv"]).arg(&home)).await;
    assert!(made.status.success(), "no virtual environment; {help}:\n{}", text(&made));
    let installed = run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "stripe"])).await;
    assert!(installed.status.success(), "`stripe` cannot be installed; {help}:\n{}", text(&installed));
    python
}

async fn run(command: &mut Command) -> Output {
    command.output().await.unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"))
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
