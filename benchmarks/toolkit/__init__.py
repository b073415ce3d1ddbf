"""What several benchmarks share: records and pages, tables in Markdown, versions, arguments, errors as text."""
