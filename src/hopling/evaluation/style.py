"""The style of the report's page, for light and dark screens and for print."""

CSS = """
:root { color-scheme: light dark;
  --paper: #fcfbf9; --ink: #22252b; --soft: #6a6f79; --rule: #dedad2; --card: #fff;
  --accent: #2f5fc4; --policy: #e4ecfd; --policy-edge: #2f5fc4;
  --world: #e6f3ea; --world-edge: #2c8550; --prompt: #f1efea; --prompt-edge: #a39d90;
  --bad: #b3382c; --bad-soft: #fbe9e6; --good: #2c7a4b; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #16181d; --ink: #e4e5e8; --soft: #989eaa; --rule: #333842; --card: #1d2026;
  --accent: #86aaf5; --policy: #1d2a45; --policy-edge: #86aaf5;
  --world: #17301f; --world-edge: #63b583; --prompt: #24272e; --prompt-edge: #6d7380;
  --bad: #f08d80; --bad-soft: #3a201e; --good: #7fcc9c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.5rem 5rem; max-width: 66rem; background: var(--paper);
  color: var(--ink); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.7rem; margin: 0; letter-spacing: -.01em; }
h2 { font-size: 1.15rem; margin: 2.8rem 0 .6rem; }
h3 { font-size: .95rem; margin: 1.4rem 0 .3rem; }
p { margin: .3rem 0; } .soft, figcaption, caption { color: var(--soft); font-size: .875rem; }
.wide { overflow-x: auto; margin-bottom: 1.2rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; caption-side: bottom; padding-top: .5rem; }
th { font-weight: 600; color: var(--soft); font-size: .8rem; text-align: right;
  padding: .3rem .6rem; border-bottom: 1px solid var(--ink); vertical-align: bottom; }
td { text-align: right; padding: .4rem .6rem; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
th:first-child, td:first-child, .text th, .text td { text-align: left; }
td:first-child { font-weight: 600; } .text td { white-space: normal; overflow-wrap: anywhere; }
.text td:first-child { font-weight: 400; font-family: ui-monospace, monospace; font-size: .82rem; }
.range { color: var(--soft); font-size: .78rem; font-weight: 400; display: block; }
.changed { font-weight: 600; color: var(--accent); }
figure { margin: 1.2rem 0; max-width: 44rem; } svg { width: 100%; height: auto; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
svg .line { fill: none; stroke: var(--accent); stroke-width: 1.8; stroke-linejoin: round; }
svg .dot { fill: var(--accent); } svg .axis { fill: none; stroke: var(--soft); }
svg .grid { stroke: var(--rule); } svg .whisker { stroke: var(--accent); stroke-width: 2; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: 1rem; }
.curves figure { margin: 0; background: var(--card); border: 1px solid var(--rule);
  border-radius: 6px; padding: .6rem; }
details { margin: .4rem 0; } summary { cursor: pointer; }
details.example { background: var(--card); border: 1px solid var(--rule); border-radius: 6px;
  padding: .5rem .9rem; margin: .6rem 0; }
.tag { display: inline-block; font-size: .75rem; padding: .05rem .45rem; border-radius: 1rem;
  border: 1px solid var(--rule); color: var(--soft); margin-right: .4rem; }
.tag.correct { color: var(--good); border-color: var(--good); }
.tag.wrong, .tag.bad { color: var(--bad); border-color: var(--bad); }
.segment { border-left: 3px solid; margin: .35rem 0; padding: .35rem .7rem;
  border-radius: 0 4px 4px 0; }
.segment pre { margin: .2rem 0; font: .82rem/1.5 ui-monospace, monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; max-height: 26rem; overflow-y: auto; }
.who { font-size: .72rem; letter-spacing: .03em; color: var(--soft); }
.prompt { background: var(--prompt); border-color: var(--prompt-edge); }
.policy { background: var(--policy); border-color: var(--policy-edge); }
.environment { background: var(--world); border-color: var(--world-edge); }
.failed { background: var(--bad-soft); border-color: var(--bad); }
.legend .segment { display: inline-block; margin-right: .6rem; padding: .1rem .6rem;
  font-size: .8rem; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1.2rem; font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media print { body { max-width: none; } .segment pre { max-height: none; } }
"""
