"""The paper's study on 121 UCI sets: models x sets x four runs, resumable, and its page."""
