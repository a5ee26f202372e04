//! The configuration file: what is read, and that every problem is told by its key.

use orchestrator::config::{Config, ConfigError, DatabaseUrl};

const GOOD: &str = r#"
environment = "test"
[database]
url = "postgres://u:secret-password@db/refunds"
[[psp]]
name = "acme"
account = "acct_1"
kind = "stripe"
base_url = "https://api.stripe.com/"
api_key_env = "ACME_API_KEY"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse("test.toml", text, &|name| (name == "ACME_API_KEY").then(|| "sk_live_secret".to_owned()))
}

fn check(change: (&str, &str), expected: &[&str]) {
    let text = GOOD.replace(change.0, change.1);
    assert_ne!(text, GOOD, "{change:?} changes nothing");
    let error = parse(&text).expect_err(change.1);
    let message = error.to_string();
    for part in expected {
        assert!(message.contains(part), "{change:?} told {message:?}, without {part:?}");
    }
    assert!(!message.contains("secret-password") && !message.contains("sk_live_secret"), "{message}");
}

#[test]
fn a_short_file_is_enough_and_shows_no_secret() {
    let config = parse(GOOD).unwrap();
    assert!(matches!(config.database.url, DatabaseUrl::Postgres(_)));
    assert_eq!(config.psps[0].base_url, "https://api.stripe.com");
    assert_eq!(config.api.listen.to_string(), "127.0.0.1:8080");
    let shown = format!("{config:?}");
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn the_sample_file_is_good() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../ops/samples/orchestrator.toml")).unwrap();
    let variable = |name: &str| Some(if name == "DATABASE_URL" { "sqlite:x".to_owned() } else { "key".to_owned() });
    Config::parse("sample", &text, &variable).unwrap();
    let all_keys = text.replace("\n# ", "\n#~").replace("#~Keys", "# Keys");
    let mut with_defaults = String::new();
    for line in all_keys.lines() {
        let line = match line.strip_prefix("#~") {
            Some(rest) if rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) => rest.to_owned(),
            _ => line.replace("#~", "# "),
        };
        with_defaults.push_str(&line);
        with_defaults.push('\n');
    }
    assert!(with_defaults.contains("\nttl = \"15s\""), "{with_defaults}");
    Config::parse("sample with defaults", &with_defaults, &variable).unwrap();
}

#[test]
fn what_is_wrong_is_told_by_its_key_and_with_what_to_do() {
    for (change, expected) in [
        (("environment = \"test\"", "environment = \"a b\""), &["environment: ", "use letters"][..]),
        (("environment = \"test\"", "enviroment = \"test\""), &["line 2, enviroment", "unknown field"][..]),
        (("postgres://", "mysql://"), &["database.url: ", "sqlite:PATH"][..]),
        (("[database]", "[database]\nurl_env = \"X\""), &["database.url: ", "keep one"][..]),
        (("[database]", "[database]\nconnections_max = 0"), &["database.connections_max: ", "2 to 200"][..]),
        (("[[psp]]", "[lease]\nbackend = \"etcd\"\n[[psp]]"), &["lease.backend: ", "sql"][..]),
        (("[[psp]]", "[lease]\nttl = \"15\"\n[[psp]]"), &["lease.ttl: ", "45s"][..]),
        (("[[psp]]", "[lease]\nttl = \"9s\"\nmargin = \"4s\"\n[[psp]]"), &["lease.margin: ", "lower it"][..]),
        (("[[psp]]", "[api]\nlisten = \"0.0.0.0:80\"\n[[psp]]"), &["api.listen: ", "127.0.0.1"][..]),
        (("[[psp]]", "[api]\nlisten = \"8080\"\n[[psp]]"), &["api.listen: ", "127.0.0.1:8080"][..]),
        (("[[psp]]", "[worker]\nbatch = 1001\n[[psp]]"), &["worker.batch: ", "1 to 1000"][..]),
        (("[[psp]]", "[log]\nfilter = \"a=b=c\"\n[[psp]]"), &["log.filter: "][..]),
        (("[[psp]]", "[log]\nformat = \"xml\"\n[[psp]]"), &["format", "xml"][..]),
        (("\"https://api.stripe.com/\"", "\"http://api.stripe.com\""), &["psp.acme.base_url: ", "https"][..]),
        (("\"https://api.stripe.com/\"", "\"api.stripe.com\""), &["psp.acme.base_url: "][..]),
        (("ACME_API_KEY", "OTHER_KEY"), &["psp.acme.api_key_env: ", "OTHER_KEY is not set"][..]),
        (("api_key_env = \"ACME_API_KEY\"", "timeout = \"60s\""), &["psp.acme.api_key: ", "missing"][..]),
        (("kind = \"stripe\"", "kind = \"stripe\"\ntimeout = \"0s\""), &["psp.acme.timeout: ", "1s to 10m"][..]),
        (("kind = \"stripe\"", "kind = \"stripe\"\nkey_lifetime = \"1h\""), &["psp.acme.key_lifetime: "][..]),
        (("kind = \"stripe\"", "kind = \"stripe\"\nunknown_ladder = []"), &["psp.acme.unknown_ladder: "][..]),
        (("kind = \"stripe\"", "kind = \"paypal\""), &["line 8, kind", "stripe"][..]),
        (
            ("[[psp]]", "[[psp]]\nwire_amounts = [{ currency = \"isk\", exponent = 2 }]"),
            &["psp.acme.wire_amounts: "][..],
        ),
    ] {
        check(change, expected);
    }
}

#[test]
fn all_problems_are_told_at_once() {
    let text = GOOD.replace("\"test\"", "\"\"").replace("https://", "ftp://").replace("ACME_API_KEY", "NONE");
    assert_eq!(parse(&text).expect_err("three problems").problems.len(), 3);
    let twice = format!("{GOOD}{}", &GOOD[GOOD.find("[[psp]]").unwrap()..]);
    assert!(parse(&twice).expect_err("two of a name").to_string().contains("psp.acme: named twice"));
}

#[test]
fn what_a_psp_promises_can_be_changed() {
    let more = "key_lifetime = \"none\"\ntimeout = \"20s\"\nwire_amounts = [{ currency = \"ISK\", exponent = 0 }]\n";
    let config = parse(&format!("{GOOD}{more}")).unwrap();
    let capabilities = &config.psps[0].capabilities;
    assert_eq!(capabilities.key_lifetime, None);
    assert_eq!((capabilities.timeout.num_seconds(), capabilities.hold_max.num_seconds()), (20, 35));
    let isk: Vec<_> = capabilities.wire_amounts.iter().filter(|wire| wire.currency.as_str() == "ISK").collect();
    assert_eq!((isk.len(), isk[0].exponent), (1, 0));
}
