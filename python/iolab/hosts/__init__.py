"""Where commands run: a host starts programs, reads files and tells facts about itself."""
