"""`python -m ettwatch_trainer.remedies.publishing REQUEST`: the publisher, or what starts those that were killed."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from ettwatch_trainer.remedies.publishing.handing import resume_pending
from ettwatch_trainer.remedies.publishing.request import PublishError
from ettwatch_trainer.remedies.publishing.supervisor import FAILED, supervise


def main(arguments: list[str] | None = None) -> int:
    """Do what is asked. 0: done, or started; 3: it cannot be published; 75: another process is at it."""
    parser = argparse.ArgumentParser(prog="python -m ettwatch_trainer.remedies.publishing", description=__doc__)
    parser.add_argument("request", type=Path, nargs="?", help="the file that hand_over has returned")
    parser.add_argument("--work", action="store_true", help="one try in this process, without beginning again")
    parser.add_argument("--resume-pending", type=Path, metavar="OUT", help="start what is not finished in this folder")
    given = parser.parse_args(arguments)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    if (given.request is None) == (given.resume_pending is None):
        parser.error("give a request, or --resume-pending OUT")
    try:
        if given.resume_pending is not None:
            for path in resume_pending(given.resume_pending):
                logging.info("started %s", path)
            return 0
        if given.work:
            from ettwatch_trainer.remedies.publishing.work import work

            return work(given.request)
        return supervise(given.request)
    except PublishError as error:
        logging.error("%s", error)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
