//! The same refunds, submitted with one POST each by a client in a process of its own.

use crate::mock::MockProcess;
use crate::node::{self, Database, Node};
use crate::refunds::{HttpReport, wait_posted};
use crate::{Failure, cpu};
use sqlx::PgPool;
use std::process::Stdio;
use tokio::process::Command;

pub(crate) async fn measure(
    database: &Database,
    mock: &MockProcess,
    node: &Node,
    pool: &PgPool,
    count: usize,
) -> Result<HttpReport, Failure> {
    let name = "http";
    node::add_payments(database, mock, name, count).await?;
    let own = std::process::id();
    let before = cpu::process_ms(own);
    let client = Command::new(std::env::current_exe()?)
        .args(["client", "--server", &node.url, "--name", name, "--count", &count.to_string()])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (rate, _polls) = wait_posted(pool, name, count).await?;
    let after = cpu::process_ms(own);
    let output = client.wait_with_output().await?;
    if !output.status.success() {
        return Err("the client failed".into());
    }
    let client_cpu_ms = String::from_utf8(output.stdout)?.trim().parse()?;
    Ok(HttpReport::new(rate, client_cpu_ms, after.saturating_sub(before)))
}
