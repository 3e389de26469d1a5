"""AppWrappers that have ended: from what is stored, and from a journal.

ended       one of them, read from its object; the JSON of ``mcad history``
stored      those that the API server has
journal     those that a journal has, deleted ones too, with all of their attempts
totals      sums by namespace and leaf
"""
