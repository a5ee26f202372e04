//! What must hold of the specification itself, whatever was played to it.

use super::player::Player;
use jobs::ids::Token;
use jobs::refund::intent::NextAction;
use jobs::refund::state::{CountsAs, State};
use orchestrator::store::read::Story;

fn holds(condition: bool, promise: &str, story: &impl std::fmt::Debug) -> Result<(), String> {
    if condition { Ok(()) } else { Err(format!("broken: {promise}\n{story:?}")) }
}

pub(crate) async fn check(player: &Player<'_>) -> Result<(), String> {
    let mut stories = Vec::new();
    for id in player.intents() {
        stories.extend(player.story(&id).await?);
    }
    for story in &stories {
        one_intent(story)?;
    }
    for id in player.payments() {
        let Some(payment) = player.store.payment(&id).await.map_err(|error| error.to_string())? else { continue };
        let sum = |counts_as: CountsAs| -> i64 {
            let counted =
                |story: &&Story| story.payment.payment_id == id && story.intent.state.counts_as() == counts_as;
            stories.iter().filter(counted).map(|story| story.intent.amount.minor).sum()
        };
        let followed =
            payment.reserved_minor == sum(CountsAs::Reserved) && payment.refunded_minor == sum(CountsAs::Refunded);
        holds(followed, "counters follow from states", &payment)?;
    }
    Ok(())
}

fn one_intent(story: &Story) -> Result<(), String> {
    let intent = &story.intent;
    let count = |kind: &str| story.transfers.iter().filter(|transfer| transfer.kind == kind).count();
    holds(count("post") <= 1 && count("reverse") <= count("post"), "one post, one reverse of it", story)?;
    let unfinished = !intent.state.is_final() && intent.state != State::NeedsReview;
    holds(!unfinished || intent.next_action_at.is_some(), "nothing waits in silence", story)?;
    holds((intent.next_action == NextAction::None) == intent.next_action_at.is_none(), "an action has a time", story)?;
    holds((intent.version == 1) == (intent.fence == Token::NONE), "every change carries a token", story)?;
    let tokens: Vec<Token> = story.attempts.iter().map(|attempt| attempt.token).collect();
    holds(tokens.is_sorted() && tokens.iter().all(|token| *token <= intent.fence), "tokens only rise", story)?;
    let versions: Vec<i64> = story.attempts.iter().map(|attempt| attempt.installed_version).collect();
    let rise = versions.windows(2).all(|pair| pair[0] < pair[1]);
    holds(rise && versions.iter().all(|version| *version <= intent.version), "versions only rise", story)?;
    let readings = story.inbox.iter().filter_map(|entry| entry.applied.as_ref());
    holds(readings.clone().all(|reading| reading.version <= intent.version), "readings are of this intent", story)
}
