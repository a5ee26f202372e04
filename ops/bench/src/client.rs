//! A client in a process of its own that posts one refund per request; its CPU time is reported beside the server's.

use crate::Failure;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::task::JoinSet;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[arg(long)]
    server: String,
    #[arg(long)]
    name: String,
    #[arg(long)]
    count: usize,
    #[arg(long, default_value_t = 512)]
    connections: usize,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let client = reqwest::Client::builder().pool_max_idle_per_host(options.connections).tcp_nodelay(true).build()?;
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    let options = Arc::new(options);
    for _ in 0..options.connections {
        let (client, next, options) = (client.clone(), next.clone(), options.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= options.count {
                    return Ok::<_, Failure>(());
                }
                post(&client, &options, number).await?;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    writeln!(std::io::stdout(), "{}", crate::cpu::process_ms(std::process::id()))?;
    Ok(())
}

async fn post(client: &reqwest::Client, options: &Options, number: usize) -> Result<(), Failure> {
    let body = serde_json::json!({
        "intent_id": format!("{}-{number:07}", options.name),
        "payment_id": format!("pi_{}{number:07}", options.name),
        "amount": "1.00",
        "currency": "EUR",
    });
    let answer = client.post(format!("{}/v1/refunds", options.server)).json(&body).send().await?;
    if answer.status().as_u16() != 202 {
        return Err(format!("refund {number}: {} {}", answer.status(), answer.text().await?).into());
    }
    answer.bytes().await?;
    Ok(())
}
