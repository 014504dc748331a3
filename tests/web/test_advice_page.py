"""Advice on the page: by remedy with its teams, of a job or a stage, the jobs and hosts behind it, other numbers."""

import re
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from support.web_page import Watched, accessible
from support.web_server import Site


def test_a_remedy_says_what_comes_back_of_this_time_then_of_a_week(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/advice")
    page = watched.settled()
    cache, publish = page.locator("article.advice").nth(0), page.locator("article.advice").nth(1)
    expect(cache.locator(".gain")).to_contain_text("17.2 GPU-hours")
    expect(cache.locator(".gain")).to_contain_text(", 3.0 % of the loss")
    expect(cache).to_contain_text("(#compilers) · 12 jobs, 31 times · 121 GPU-hours a week at this pace")
    expect(cache).to_contain_text("Contains: keep it.")
    expect(cache).to_contain_text("The others waited for east-h7 in 5 attempts of job-1, job-2 and 1 more.")
    # One remedy for several teams is told once, with the teams inside.
    expect(publish.locator("h3")).to_have_text("Publish after the GPUs are released")
    expect(publish.locator(".gain")).to_contain_text("4.70 GPU-hours")
    expect(publish.locator(".teams > li")).to_have_count(2)
    expect(publish.locator(".teams summary").nth(2)).not_to_be_visible()
    publish.get_by_text("team team-feed: 1.10 GPU-hours").click()
    expect(publish.get_by_role("link", name="team-feed")).to_be_visible()
    assert accessible(page) == []


def test_the_jobs_behind_it_are_those_that_the_remedy_names(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/advice?range=yesterday")
    page = watched.settled()
    cache = page.locator("article.advice").nth(0)
    cache.get_by_text("The jobs behind it (the 2 that gain most, of 12)").click()
    rows = cache.locator("details[open] tbody tr")
    expect(rows).to_have_text(["job-19.004", "job-28.203"])
    rows.nth(0).get_by_role("link", name="job-1").click()
    expect(page).to_have_url(site.url + "/jobs/job-1?range=yesterday")


def test_advice_of_a_job_and_of_a_stage_is_asked_for_as_such(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/jobs/job-1")
    watched.settled()
    page.locator("#start").get_by_role("link", name="Gains").first.click()
    watched.settled()
    expect(page.locator("main")).to_contain_text("Only job job-1")
    asked = next(one.asked for one in reversed(site.asked) if one.parts == ("advice",))
    assert (asked["job"], asked["stage"]) == ("job-1", "pt2_compilation")
    expect(page.locator(".note").first).to_contain_text("Of 140 GPU-hours of Compilation, 120 would be left")
    expect(page.locator("article.advice").first).to_contain_text("8.60 GPU-hours of Compilation")
    expect(page.locator("article.advice").first).not_to_contain_text("a week")
    assert accessible(page) == []
    page.get_by_role("link", name="Show all jobs").click()
    expect(page.get_by_label("Team", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("asked", "kind", "field", "value"),
    [
        ("", "stage", "to % of what it is", "50"),
        ("?stage=shutdown.model_publish&team=team-feed", "stage", "Stage", "shutdown.model_publish"),
        ("?stage=wasted_training.rework", "interval", "every … minutes", "15"),
        ("?stage=wasted_training.hang", "detection", "after … seconds", "60"),
        ("?stage=wasted_training.checkpoint_save", "blocking", "to % of what it is", "20"),
        ('?if={"changes":[{"remedy":"compile_cache","team":"team-feed"}]}', "stage", "Stage", "pt2_compilation"),
        ('?if={"changes":[{"remedy":"compile_cache","team":"team-feed"}]}', "stage", "to % of what it is", "12.5"),
        ('?if={"changes":[{"remedy":"save_interval"}]}', "interval", "every … minutes", "15"),
        ('?if={"changes":[{"remedy":"fast_detection"}]}', "detection", "after … seconds", "60"),
        ('?if={"changes":[{"remedy":"replace_stragglers"}]}', "remedy", "Remedy", "replace_stragglers"),
        (
            '?if={"changes":[{"stage":"scheduling.queue_wait","factor":0.25}]}',
            "stage",
            "Stage",
            "scheduling.queue_wait",
        ),
        ('?if={"changes":[{"save_interval_s":600}],"team":"team-feed"}', "interval", "every … minutes", "10"),
        ('?if={"changes":["pt2_compilation x 0.5"]}', "stage", "to % of what it is", "50"),
    ],
)
def test_other_numbers_begin_with_what_they_came_from(
    site: Site, watched: Watched, asked: str, kind: str, field: str, value: str
) -> None:
    watched.page.goto(site.url + "/advice" + quote(asked, safe="?=&"))
    page = watched.settled()
    form = page.locator("#what-if form")
    expect(form.locator("select").first).to_have_value(kind)
    expect(form.locator("label.pick").filter(has_text=re.compile(f"^{field}")).locator("input, select")).to_have_value(
        value
    )
    expect(form.get_by_label("For team")).to_have_value("team-feed" if "team-feed" in asked else "")


def test_what_was_asked_is_told_in_plain_words(site: Site, watched: Watched) -> None:
    page = watched.page
    page.goto(site.url + "/advice")
    watched.settled()
    page.get_by_role("link", name="Try it with other numbers").first.click()
    expect(page.locator("#what-if")).to_contain_text("Asked: Share the compile cache between attempts (team team-ads).")
    page.get_by_label("to % of what it is").fill("30")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#what-if")).to_contain_text("Asked: Compilation at 30 % of its length, for team team-ads.")


def test_what_follows_from_other_things_is_no_stage_to_change(site: Site, watched: Watched) -> None:
    watched.page.goto(site.url + "/advice")
    page = watched.settled()
    values = page.locator("#what-if select[name=stage] option").evaluate_all("all => all.map(one => one.value)")
    assert "pt2_compilation" in values
    assert not {"effective_training", "wasted_training", "wasted_training.rework", "wasted_training.hang"} & set(values)
