"""The paper's study on 121 UCI sets: models x sets x four runs, resumable, and a page of what came out."""
